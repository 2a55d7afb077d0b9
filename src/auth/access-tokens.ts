/** Access tokens (DESIGN §5): JWTs of one pinned form, which prove a session without touching the store. */
import { createDecoder, createSigner, createVerifier } from 'fast-jwt'
import type { Session } from './session.ts'
import type { SigningKey, SigningKeys } from './signing-keys.ts'

const ALGORITHM = 'HS256'
const TYPE = 'at+jwt'
const ISSUER = 'gatehouse'
const AUDIENCE = 'gatehouse'

/** Seconds by which another instance's clock may be ahead of this one's. */
const CLOCK_TOLERANCE = 5

/** Longer than any token of ours: what exceeds it is not worth a look. */
const MAX_LENGTH = 1_024

export interface AccessTokenClaims {
  readonly userId: string
  readonly sessionId: string
  /** Milliseconds since the epoch, a whole second. */
  readonly expiresAt: number
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
    // Time is checked below: the library takes times that are not finite numbers, and ignores an `iat` in the future.
    ignoreExpiration: true,
    cache: false,
  })

const decode = createDecoder({ complete: true })

/** base64url has several spellings of one signature (spare bits of the last character); ours is the one accepted. */
const spelledExactly = (token: string): boolean => {
  const signature = token.slice(token.lastIndexOf('.') + 1)
  return Buffer.from(signature, 'base64url').toString('base64url') === signature
}

const HEADER_MEMBERS = ['alg', 'kid', 'typ']

/** Members that we do not write, such as `crit` or `b64`, would have to be understood; `typ` has one letter case. */
const isOurs = (header: Record<string, unknown>): boolean =>
  header.typ === TYPE && Object.keys(header).every(member => HEADER_MEMBERS.includes(member))

const isWholeSecond = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0

/** Issues and verifies tokens. One token belongs to one session and ends no later than it. */
export class AccessTokens {
  readonly #sign: (payload: Record<string, unknown>) => string
  readonly #verifiers = new Map<unknown, Verify>()
  readonly #clock: () => number

  constructor(keys: SigningKeys, clock: () => number) {
    this.#clock = clock
    this.#sign = createSigner({
      key: keys.current.secret,
      algorithm: ALGORITHM,
      kid: keys.current.id,
      header: { alg: ALGORITHM, typ: TYPE },
    })
    for (const key of [keys.current, keys.previous]) {
      if (key !== null) this.#verifiers.set(key.id, verifierFor(key))
    }
  }

  issue(session: Session): string {
    return this.#sign({
      sub: session.userId,
      sid: session.id,
      iat: Math.floor(session.createdAt / 1_000),
      exp: session.expiresAt / 1_000,
      iss: ISSUER,
      aud: AUDIENCE,
    })
  }

  /** @returns the claims of a token that is exactly of this service's form and in force, else `null`; never throws. */
  verify(token: string): AccessTokenClaims | null {
    if (token.length > MAX_LENGTH) return null
    try {
      const { header } = decode(token) as { header: Record<string, unknown> }
      const verify = this.#verifiers.get(header.kid)
      if (verify === undefined || !isOurs(header) || !spelledExactly(token)) return null
      return this.#claims(verify(token) as Record<string, unknown>)
    } catch {
      // Whatever the library makes of a hostile token, including errors that are not its own: it identifies nobody.
      return null
    }
  }

  #claims({ sub, sid, iat, exp, aud }: Record<string, unknown>): AccessTokenClaims | null {
    const now = this.#clock() / 1_000
    if (typeof sub !== 'string' || typeof sid !== 'string' || aud !== AUDIENCE) return null
    if (!isWholeSecond(iat) || !isWholeSecond(exp) || exp <= now || iat > now + CLOCK_TOLERANCE) return null
    return { userId: sub, sessionId: sid, expiresAt: exp * 1_000 }
  }
}
