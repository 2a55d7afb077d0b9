/** A Fastify plugin and an Express middleware that verify the requests of a service. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Identity } from './interface.ts'
import type { Verifier } from './verifier.ts'

/** What a route needs; each member that is given must hold. */
export interface Needs {
  /** An API key and a token of an OAuth client have some scopes, a session all. */
  readonly scope?: string
  readonly role?: string
}

/** A response instead of the route's. */
export interface Refusal {
  readonly status: 401 | 403 | 503
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly errors: { readonly global: readonly string[] } }
}

const refusal = (status: Refusal['status'], message: string, headers = {}): Refusal => ({
  status,
  headers: { 'cache-control': 'no-store', ...headers },
  body: { errors: { global: [message] } },
})

const UNAVAILABLE = refusal(503, 'Access cannot be checked now, try again', { 'retry-after': '1' })
const NOBODY = refusal(401, 'Sign in to use this route', { 'www-authenticate': 'Bearer' })
const INVALID = refusal(401, 'Sign in to use this route', {
  'www-authenticate': 'Bearer error="invalid_token"',
})
const FORBIDDEN = refusal(403, 'This needs a role or a scope that you do not have')

/** @returns who presents the bearer token of a request, or what to respond. */
export const authenticate = async (
  verifier: Verifier,
  { headers: { authorization = '' } }: Pick<IncomingMessage, 'headers'>,
  { scope, role }: Needs = {},
): Promise<Identity | Refusal> => {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization) ?? []
  if (token === undefined) return NOBODY
  const identity = await verifier.verify(token).catch(() => undefined)
  if (identity === undefined) return UNAVAILABLE
  if (identity === null) return INVALID
  const isAllowed =
    (scope === undefined || identity.scope.split(' ').includes(scope)) &&
    (role === undefined || identity.roles.includes(role))
  return isAllowed ? identity : FORBIDDEN
}

/** An Express middleware: sets `request.user` to the {@link Identity}, or responds with 401, 403 or 503. */
export const requireUser =
  (verifier: Verifier, needs?: Needs) =>
  async (
    request: IncomingMessage & { user?: unknown },
    response: ServerResponse,
    next: (error?: unknown) => void,
  ): Promise<void> => {
    const found = await authenticate(verifier, request, needs)
    if ('active' in found) {
      request.user = found
      return next()
    }
    response.writeHead(found.status, { ...found.headers, 'content-type': 'application/json; charset=utf-8' })
    response.end(JSON.stringify(found.body))
  }

interface FastifyLike {
  decorateRequest(name: string, value: null): unknown
  addHook(name: 'onRequest', hook: (request: never, reply: never) => Promise<unknown>): unknown
  addHook(name: 'onClose', hook: () => Promise<void>): unknown
}

interface FastifyRequestLike extends Pick<IncomingMessage, 'headers'> {
  readonly routeOptions: { readonly config: { readonly access?: Needs | 'public' } }
  user: Identity | null
}

interface FastifyReplyLike {
  code(status: number): { headers(headers: object): { send(body: object): unknown } }
}

/**
 * A Fastify plugin: sets `request.user`. Every route needs a user, and what its `config.access` names (`{ role: 'editor' }`), unless that
 * is `'public'`.
 */
export const verifierPlugin = async (
  app: FastifyLike,
  { verifier }: { verifier: Verifier },
): Promise<void> => {
  app.decorateRequest('user', null)
  app.addHook('onRequest', async (request: FastifyRequestLike, reply: FastifyReplyLike) => {
    const { access = {} } = request.routeOptions.config
    if (access === 'public') return undefined
    const found = await authenticate(verifier, request, access)
    if (!('active' in found)) return reply.code(found.status).headers(found.headers).send(found.body)
    request.user = found
    return undefined
  })
  app.addHook('onClose', async () => verifier.close())
}
// Fastify then applies it to the whole instance, as fastify-plugin does.
Object.assign(verifierPlugin, { [Symbol.for('skip-override')]: true })
