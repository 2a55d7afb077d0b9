/** API keys: tokens that a user creates for their programs, with fewer rights than a session. */
import { toIso, toIsoOrNull } from '../users/serializers.ts'
import type { User } from '../users/user.ts'

/** Timestamps are milliseconds since the epoch. The key itself is not stored, see `opaque-key.ts`. */
export interface ApiKey {
  readonly id: string
  readonly name: string
  /** The beginning of the key, by which its owner recognises it. */
  readonly prefix: string
  readonly scopes: readonly string[]
  readonly createdAt: number
  /** `null`: it does not expire. */
  readonly expiresAt: number | null
  /** Up to a minute older than the last request; `null` before the first. */
  readonly lastUsedAt: number | null
}

/** An API key in JSON, for HTTP and the command line. */
export const serializeApiKey = (apiKey: ApiKey) => ({
  ...apiKey,
  createdAt: toIso(apiKey.createdAt),
  expiresAt: toIsoOrNull(apiKey.expiresAt),
  lastUsedAt: toIsoOrNull(apiKey.lastUsedAt),
})

/** What a new key is created with, an admin key too. */
export interface NewKeyOptions {
  readonly name: string
  readonly scopes: readonly string[]
  /** Milliseconds since the epoch; `null`: the key does not expire. */
  readonly expiresAt: number | null
}

export interface FoundApiKey {
  readonly apiKey: ApiKey
  readonly user: User
  /** The number that the store assigned to the user and never reuses. Last requests are written by this number. */
  readonly userKey: number
}
