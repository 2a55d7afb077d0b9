/** ID tokens (OpenID Connect Core §2): who has signed in to a client, how, and when. They open nothing. */
import { createHash } from 'node:crypto'
import { isMultiFactor, MULTI_FACTOR_POLICY } from '#core/accounts/sign-in-methods'
import { type Client, clientIdOf, type IdTokenAlgorithm } from './client.ts'
import type { OAuthDeps } from './definitions.ts'
import type { Grant } from './grant.ts'
import type { IdTokenKeys } from './id-token-keys.ts'
import { userClaims } from './user-claims.ts'

export interface NewIdToken {
  readonly client: Client
  readonly grant: Pick<Grant, 'scopes' | 'authenticatedAt'>
  readonly userId: string
  /** In which the user has decided. */
  readonly sessionId: string
  /** How the user had signed in, see `Session.amr`. */
  readonly amr: readonly string[]
  /** Of the authorization request; `null`: it had none. */
  readonly nonce: string | null
  readonly accessToken: string
}

const SECOND = 1_000

/** Half of a digest (Core §3.1.3.6): of SHA-512 with Ed25519, else of SHA-256. */
const accessTokenHash = (token: string, algorithm: IdTokenAlgorithm): string => {
  const digest = createHash(algorithm === 'EdDSA' ? 'sha512' : 'sha256')
    .update(token)
    .digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

export class IdTokens {
  readonly #deps: OAuthDeps
  readonly #keys: IdTokenKeys

  constructor(deps: OAuthDeps, keys: IdTokenKeys) {
    this.#deps = deps
    this.#keys = keys
  }

  /** @returns `null` without the scope `openid`, or if the user is gone. */
  async issue({
    client,
    grant,
    userId,
    sessionId,
    amr,
    nonce,
    accessToken,
  }: NewIdToken): Promise<string | null> {
    const { clock, settings, config, findUser } = this.#deps
    const user = grant.scopes.includes('openid') ? await findUser(userId) : undefined
    if (user === undefined) return null
    const issuedAt = Math.floor(clock() / SECOND)
    return this.#keys.sign(client.idTokenAlgorithm, {
      ...userClaims(user, grant.scopes),
      iss: config.publicUrl,
      aud: clientIdOf(client),
      sid: sessionId,
      iat: issuedAt,
      exp: issuedAt + Math.floor(settings.OAUTH_ACCESS_TOKEN / SECOND),
      auth_time: Math.floor(grant.authenticatedAt / SECOND),
      ...(nonce !== null && { nonce }),
      ...(amr.length > 0 && { amr }),
      ...(isMultiFactor(amr) && { acr: MULTI_FACTOR_POLICY }),
      at_hash: accessTokenHash(accessToken, client.idTokenAlgorithm),
    })
  }
}
