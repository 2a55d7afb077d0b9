/** Access tokens (DESIGN §5): JWTs of one fixed form. Verifying one identifies a session without the store. */
import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import { readSecret, type SecretSource } from './secret-file.ts'
import type { Session } from './session.ts'
import { type SigningKey, type SigningKeys, signingKeys } from './signing-keys.ts'

const ALGORITHM = 'HS256'
const TYPE = 'at+jwt'
const ISSUER = 'gatehouse'
const AUDIENCE = 'gatehouse'

/** Longer than any token that the service issues. */
const MAX_LENGTH = 1_024

export interface AccessTokenClaims {
  readonly userId: string
  readonly sessionId: string
  /** Milliseconds since the epoch, whole seconds. */
  readonly issuedAt: number
  readonly expiresAt: number
}

/** The part of the configuration that {@link AccessTokens.from} reads. */
export interface AccessTokenSecrets {
  readonly jwtSecret: SecretSource
  readonly jwtSecretPrevious: string | null
}

type Verify = (token: string) => unknown

const verifierFor = (key: SigningKey): Verify =>
  createVerifier({
    key: key.secret,
    algorithms: [ALGORITHM],
    checkTyp: TYPE,
    allowedIss: ISSUER,
    allowedAud: AUDIENCE,
    requiredClaims: ['sub', 'sid', 'iat', 'exp', 'iss', 'aud'],
    // claimsOf and Authenticator check times: the library accepts times that are not finite numbers.
    ignoreExpiration: true,
    cache: false,
  })

const decode = createDecoder({ complete: true })

/** base64url has several spellings of one signature (unused bits of the last character). Only the canonical one is accepted. */
const hasCanonicalSignature = (token: string): boolean => {
  const signature = token.slice(token.lastIndexOf('.') + 1)
  return Buffer.from(signature, 'base64url').toString('base64url') === signature
}

const HEADER_MEMBERS = ['alg', 'kid', 'typ']

/** Rejects every other member: `crit` or `b64`, for example, would have to be processed. `typ` has one letter case. */
const hasExpectedHeader = (header: Record<string, unknown>): boolean =>
  header.typ === TYPE && Object.keys(header).every(member => HEADER_MEMBERS.includes(member))

const isWholeSecond = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

const signerFor = (key: SigningKey) =>
  createSigner({
    key: key.secret,
    algorithm: ALGORITHM,
    kid: key.id,
    header: { alg: ALGORITHM, typ: TYPE },
  })

const headerOf = (token: string): string => token.slice(0, token.indexOf('.'))

/** A token's `iat`: when its session was opened, in whole seconds. */
const issuedAtOf = (createdAt: number): number => Math.floor(createdAt / 1_000)

/**
 * Whether verified claims are those of the token that was issued for a session. `iat` is compared with the session, not with
 * the clock: a clock that was set back, or is behind another instance's, makes no token invalid.
 */
export const isTokenOf = (
  { userId, issuedAt }: AccessTokenClaims,
  session: Pick<Session, 'userId' | 'createdAt'>,
): boolean => userId === session.userId && issuedAt === issuedAtOf(session.createdAt) * 1_000

/** Issues and verifies tokens. A token belongs to one session and expires no later than the session. */
export class AccessTokens {
  readonly #sign: (payload: Record<string, unknown>) => string
  readonly #verifiers = new Map<unknown, Verify>()
  /** By the encoded header of issued tokens, so that it need not be decoded. */
  readonly #verifiersByHeader = new Map<string, Verify>()

  /** @throws {Error} when the file of the secret cannot be read or created. */
  static from({ jwtSecret, jwtSecretPrevious }: AccessTokenSecrets): AccessTokens {
    return new AccessTokens(signingKeys(readSecret(jwtSecret), jwtSecretPrevious))
  }

  constructor(keys: SigningKeys) {
    this.#sign = signerFor(keys.current)
    for (const key of [keys.current, keys.previous]) {
      if (key === null) continue
      const verify = verifierFor(key)
      this.#verifiers.set(key.id, verify)
      this.#verifiersByHeader.set(headerOf(signerFor(key)({})), verify)
    }
  }

  issue(session: Pick<Session, 'id' | 'userId' | 'createdAt' | 'expiresAt'>): string {
    return this.#sign({
      sub: session.userId,
      sid: session.id,
      iat: issuedAtOf(session.createdAt),
      exp: session.expiresAt / 1_000,
      iss: ISSUER,
      aud: AUDIENCE,
    })
  }

  /**
   * Never throws.
   * @returns the claims of a token of exactly this service's form, which may have expired; else `null`.
   */
  verify(token: string): AccessTokenClaims | null {
    if (token.length > MAX_LENGTH) return null
    const { stackTraceLimit } = Error
    // The library throws for every forged token. Capturing a stack that is never read took a quarter of such a request.
    Error.stackTraceLimit = 0
    try {
      const verify = this.#verifiersByHeader.get(headerOf(token)) ?? this.#verifierByDecoding(token)
      if (verify === undefined || !hasCanonicalSignature(token)) return null
      return claimsOf(verify(token) as Record<string, unknown>)
    } catch {
      // A hostile token can cause any error in the library, not only the documented ones. It is invalid in every case.
      return null
    } finally {
      Error.stackTraceLimit = stackTraceLimit
    }
  }

  #verifierByDecoding(token: string): Verify | undefined {
    const { header } = decode(token) as { header: Record<string, unknown> }
    return hasExpectedHeader(header) ? this.#verifiers.get(header.kid) : undefined
  }
}

const claimsOf = ({ sub, sid, iat, exp, aud }: Record<string, unknown>): AccessTokenClaims | null => {
  if (typeof sub !== 'string' || typeof sid !== 'string' || aud !== AUDIENCE) return null
  if (!isWholeSecond(iat) || !isWholeSecond(exp)) return null
  return { userId: sub, sessionId: sid, issuedAt: iat * 1_000, expiresAt: exp * 1_000 }
}
