/**
 * Authentication of clients (RFC 6749 §2.3). A client uses the one method that it is registered with. Failures are counted for each client
 * and network, and a right secret is never refused because of them: nobody can lock a client out.
 */
import { timingSafeEqual } from 'node:crypto'
import { keyDigest } from '#core/auth/opaque-key'
import { digestKey } from '#core/rate-limits/limits'
import { ServiceError } from '#feature/declaration'
import type { RateLimit } from '#storage/rate-limit'
import {
  ASSERTION_TYPE,
  type Assertion,
  hasKeyFor,
  isSigned,
  readAssertion,
  readClaims,
} from './assertions.ts'
import { type AuthMethod, isPublic, type StoredClient } from './client.ts'
import { type ClientKey, keysIn, keysOf } from './client-keys.ts'
import type { Clients } from './clients.ts'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { RemoteDocumentError, RemoteDocuments } from './remote-documents.ts'

/** Failures of one client from one network within a minute. */
const MAX_FAILURES = 20

/** Bytes of the keys of a client. */
const MAX_BYTES = 65_536

/** To one server. */
const MAX_CONNECTIONS = 4

const keysOfDocument = (document: unknown): readonly ClientKey[] => {
  const keys = keysIn(document)
  if (keys === null) throw new RemoteDocumentError('the document has no keys')
  return keys
}

/** The parameters of a form that identify the client. */
export interface ClientParameters {
  readonly client_id?: string | undefined
  readonly client_secret?: string | undefined
  readonly client_assertion?: string | undefined
  readonly client_assertion_type?: string | undefined
}

export interface ClientRequest {
  /** The header `Authorization`. */
  readonly authorization: string | undefined
  readonly parameters: ClientParameters
  /** The client address, or its network. */
  readonly network: string
}

interface Credentials {
  readonly method: AuthMethod
  readonly clientId: string
  readonly secret?: string
  readonly assertion?: Assertion
}

const CHALLENGE = { headers: { 'www-authenticate': 'Basic realm="oauth"' } }

export const invalidClient = (): ServiceError =>
  new ServiceError(ERRORS.invalidClient, { ...CHALLENGE, sampledAs: 'oauth-client' })

/** For a client whose keys could not be read. */
const keysUnavailable = (clientId: string, reason: string): ServiceError =>
  new ServiceError(ERRORS.invalidClient, {
    ...CHALLENGE,
    isOutage: true,
    logged: { client: clientId, reason: `jwks_uri: ${reason}` },
  })

/** RFC 6749 §2.3.1: both parts are encoded as in a form. */
const decodedPart = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalidClient()
  }
}

const fromHeader = (authorization: string): Credentials => {
  const [, encoded = ''] = /^basic +([\w+/=-]+)$/i.exec(authorization) ?? []
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon === -1) throw invalidClient()
  return {
    method: 'client_secret_basic',
    clientId: decodedPart(text.slice(0, colon)),
    secret: decodedPart(text.slice(colon + 1)),
  }
}

const fromAssertion = (text: string, type: string | undefined): Credentials => {
  const assertion = type === ASSERTION_TYPE ? readAssertion(text) : null
  if (assertion === null) throw invalidClient()
  return { method: 'private_key_jwt', clientId: assertion.clientId, assertion }
}

/** @throws {ServiceError} `invalidClient`, `invalidRequest` for several methods at once */
const credentialsOf = ({ authorization, parameters }: ClientRequest): Credentials => {
  const { client_id: id, client_secret: secret, client_assertion: assertion } = parameters
  const isHeader = authorization !== undefined && /^basic\b/i.test(authorization)
  if ([isHeader, secret !== undefined, assertion !== undefined].filter(Boolean).length > 1)
    throw new ServiceError(ERRORS.invalidRequest)
  const credentials = isHeader
    ? fromHeader(authorization)
    : assertion !== undefined
      ? fromAssertion(assertion, parameters.client_assertion_type)
      : ({
          method: secret === undefined ? 'none' : 'client_secret_post',
          clientId: id ?? '',
          ...(secret !== undefined && { secret }),
        } as const)
  if (id !== undefined && id !== credentials.clientId) throw new ServiceError(ERRORS.invalidRequest)
  return credentials
}

const equals = (digest: string, other: string | null): boolean =>
  other !== null && timingSafeEqual(Buffer.from(digest), Buffer.from(other))

const isSecretOf = (secret: string, client: StoredClient, now: number): boolean => {
  const digest = keyDigest(secret)
  const isCurrent = equals(digest, client.secretDigest)
  const isFormer = equals(digest, client.formerDigest) && now < (client.formerSecretExpiresAt ?? 0)
  return isCurrent || isFormer
}

export class ClientAuthentication {
  readonly #deps: OAuthDeps
  readonly #clients: Clients
  readonly #failures: RateLimit
  /** By their `jwks_uri`. */
  readonly #keys: RemoteDocuments<readonly ClientKey[]>

  constructor(deps: OAuthDeps, clients: Clients) {
    this.#deps = deps
    this.#clients = clients
    this.#failures = deps.openRateLimit({ name: 'failures', points: MAX_FAILURES, seconds: 60, final: true })
    const { OAUTH_ALLOWED_HOSTS: allowedHosts } = deps.settings
    this.#keys = new RemoteDocuments({
      http: deps.openHttpClient({ allowedHosts, maxConnections: MAX_CONNECTIONS }),
      clock: deps.clock,
      maxBytes: MAX_BYTES,
      read: keysOfDocument,
    })
  }

  /**
   * The client of a request, confidential or public.
   * @throws {ServiceError} `invalidClient`, `invalidRequest`, `tooManyRequests`
   */
  async authenticate(request: ClientRequest): Promise<StoredClient> {
    const credentials = credentialsOf(request)
    const client = await this.#clients.named(credentials.clientId)
    if (client !== undefined && (await this.#isAuthentic(client, credentials))) return client
    const { allowed, seconds } = await this.#failures.consume(
      digestKey(JSON.stringify([credentials.clientId, request.network])),
    )
    if (allowed) throw invalidClient()
    throw new ServiceError('tooManyRequests', {
      headers: { 'retry-after': String(seconds) },
      sampledAs: 'oauth-client',
    })
  }

  /** The same for a client that keeps a secret. @throws {ServiceError} `invalidClient`, `invalidRequest`, `tooManyRequests` */
  async authenticateConfidential(request: ClientRequest): Promise<StoredClient> {
    const client = await this.authenticate(request)
    if (isPublic(client)) throw invalidClient()
    return client
  }

  async #isAuthentic(client: StoredClient, { method, secret, assertion }: Credentials): Promise<boolean> {
    if (method !== client.authMethod) return false
    if (assertion !== undefined) return this.#isFirstUse(assertion, client)
    return secret === undefined ? isPublic(client) : isSecretOf(secret, client, this.#deps.clock())
  }

  async #isFirstUse(assertion: Assertion, client: StoredClient): Promise<boolean> {
    const { store, clock, config } = this.#deps
    const use = readClaims(assertion, client, config.publicUrl, clock())
    if (use === null || !isSigned(assertion, await this.#keysFor(assertion, client))) return false
    return store.useId(use.id, use.expiresAt)
  }

  /** @throws {ServiceError} `invalidClient` if they cannot be read. */
  async #keysFor(assertion: Assertion, client: StoredClient): Promise<readonly ClientKey[]> {
    if (client.jwksUri === null) return keysOf(client)
    try {
      return await this.#keys.get(client.jwksUri, keys => hasKeyFor(assertion, keys))
    } catch (error) {
      throw error instanceof RemoteDocumentError ? keysUnavailable(client.id, error.message) : error
    }
  }
}
