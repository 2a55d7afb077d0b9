/** Access tokens of clients (RFC 9068): signed, and no row each. Authentication finds the grant or client that one stands for. */
import { newId, ServiceError } from '#feature/declaration'
import type { ClientTokens } from '#feature/deps'
import type { Client } from './client.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import type { Resource } from './resource.ts'
import { fitting } from './scopes.ts'

export interface NewToken {
  readonly client: Client
  /** `null`: the client acts for itself. */
  readonly grant: {
    readonly id: string
    readonly userId: string
    readonly authenticatedAt: number
    /** The organization that the token is limited to; `null`: none. */
    readonly organization: string | null
  } | null
  readonly scopes: readonly string[]
  /** `null`: Gatehouse. */
  readonly resource: Resource | null
  /** The thumbprint of the key that it is bound to; `null`: it is a bearer token. */
  readonly jkt: string | null
}

/** The body of a response with an access token (RFC 6749 §5.1). */
export interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'Bearer' | 'DPoP'
  readonly expires_in: number
  readonly scope: string
  readonly refresh_token?: string
  readonly id_token?: string
}

const SECOND = 1_000

export class Tokens {
  readonly #deps: OAuthDeps
  readonly #signer: ClientTokens

  constructor(deps: OAuthDeps, signer: ClientTokens) {
    this.#deps = deps
    this.#signer = signer
  }

  /** @throws {ServiceError} `invalidScope` if no scope is left. */
  issue({ client, grant, scopes, resource, jkt }: NewToken): TokenResponse {
    const { clock, settings } = this.#deps
    const granted = fitting(scopes)
    if (granted.length === 0) throw new ServiceError(ERRORS.invalidScope)
    const issuedAt = Math.floor(clock() / SECOND) * SECOND
    const lifetime = Math.floor(settings.OAUTH_ACCESS_TOKEN / SECOND)
    const token = this.#signer.issueToClient({
      clientId: client.id,
      subject: grant?.userId ?? client.id,
      grantId: grant?.id ?? null,
      tokenId: newId(clock()),
      scopes: granted,
      audience: resource?.identifier ?? this.#signer.audience,
      authenticatedAt: grant?.authenticatedAt ?? null,
      jkt,
      organization: grant?.organization ?? null,
      issuedAt,
      expiresAt: issuedAt + lifetime * SECOND,
    })
    return {
      access_token: token,
      token_type: jkt === null ? 'Bearer' : 'DPoP',
      expires_in: lifetime,
      scope: granted.join(' '),
    }
  }
}
