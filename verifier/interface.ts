/** What a verifier is given, and what it returns. */
import type { VerifierError } from './requests.ts'

/** Who presents a token, with the members of RFC 7662. `sid` is a session, `jti` an API key or a grant. */
export interface Identity {
  readonly active: true
  /** The id of the user. */
  readonly sub: string
  /** Separated by spaces. A session has all. */
  readonly scope: string
  readonly roles: readonly string[]
  /** Seconds since the epoch. */
  readonly exp?: number
  readonly iat?: number
  readonly auth_time?: number
  readonly amr?: readonly string[]
  readonly sid?: string
  readonly jti?: string
  readonly client_id?: string
  readonly act?: { readonly sub: string }
}

export interface VerifierOptions {
  /** Where Gatehouse is, with the prefix of a host: `https://accounts.example.com`. */
  readonly baseUrl: string
  /** An admin key with the scope `tokens:introspect`. */
  readonly adminKey: string
  /** Tokens that are kept in memory; 10,000 by default. */
  readonly maxTokens?: number
  /**
   * Milliseconds for which results may be used after the last contact with the service. 1,000 by default, and at least. With more, tokens go on
   * to be accepted while the service cannot be reached, and a revocation may be noticed that much later.
   */
  readonly maxStaleness?: number
  /** Called with each failure: a request of a verifier was not answered. */
  readonly onError?: (error: VerifierError) => void
}

/** Counts since the start, for metrics. */
export interface VerifierStatistics {
  /** Tokens that were in memory. */
  readonly hits: number
  readonly misses: number
  /** Requests of introspection: many misses at once are one. */
  readonly requests: number
  readonly failures: number
  /** Tokens in memory now. */
  readonly kept: number
  /** Milliseconds since the sending of the last poll that was answered. */
  readonly age: number
}
