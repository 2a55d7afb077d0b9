/**
 * Forward authentication for reverse proxies: nginx `auth_request`, Caddy `forward_auth`, Traefik ForwardAuth, HAProxy, Envoy `ext_authz`.
 * A request of any method is about the request that the proxy has received: 200 with who sends it, or a response for the client.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { ERRORS } from '#features/forward-auth/definitions'
import { identityHeaders } from '#features/forward-auth/forward-auth'
import { forwardedUrlFinder } from '#features/forward-auth/forwarded-url'
import { InputId, Role, Strict } from '#routes/schemas'

/** HEAD follows from GET. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

/** What narrows the access. */
const Query = Strict({
  role: Type.Optional(Role),
  scope: Type.Optional(Type.String()),
  organization: Type.Optional(InputId),
  factors: Type.Optional(Type.Literal('2')),
  redirect: Type.Optional(
    Type.Literal('header', { description: 'nginx takes no redirect: 401 with Location' }),
  ),
})

const Anything = Type.Object({}, { additionalProperties: true })
const AnyPath = Type.Object({ '*': Type.Any() })

/** Whether a person waits for a page. */
const isNavigation = (request: FastifyRequest): boolean => {
  const { 'sec-fetch-mode': mode = 'navigate', upgrade } = request.raw.headers
  return mode === 'navigate' && upgrade === undefined && request.accepts().type(['json', 'html']) === 'html'
}

const sendIdentity = (request: FastifyRequest, reply: FastifyReply): void => {
  reply.header('cache-control', 'no-store').headers(identityHeaders(request.user)).send()
}

const forwardAuthRoutes: FastifyPluginAsyncTypebox = async app => {
  const { forwardAuth, routeGuards } = app.services
  if (forwardAuth === null) return
  const { authenticateUser } = app.requestAuthentication
  const membership = routeGuards.organization
  if (membership === undefined) throw new Error('The guard of organizations is missing')
  const forwardedUrl = forwardedUrlFinder(app.config.trustedProxies)
  // The body, or its type alone, is that of the request which the proxy asks about.
  app.addHook('onRequest', function ignoreBody({ raw: { headers } }, _reply, done) {
    if (headers['content-type'] !== undefined) delete headers['content-type']
    done()
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))

  /** Sends the error of a request of nobody. Browsers are led to the page for sign-in. */
  const refuse = (error: Error, request: FastifyRequest, reply: FastifyReply, onlyHeader: boolean): void => {
    reply.header('cache-control', 'no-store')
    const isNobody = error instanceof ServiceError && error.status === 401
    if (!isNobody || !app.config.hasPages || !isNavigation(request)) return void reply.send(error)
    const url = forwardAuth.signInUrl(forwardedUrl(request))
    if (onlyHeader) reply.header('location', url).send(error)
    else reply.redirect(url, 303)
  }

  const requireMembership = async (request: FastifyRequest, organizationId: string): Promise<void> => {
    try {
      const { user, tokenOrganization } = request
      await membership.admit({ user, tokenOrganization, params: { organizationId } }, true)
    } catch (error) {
      throw error instanceof ServiceError && error.status < 500
        ? new ServiceError(ERRORS.membershipRequired)
        : error
    }
  }

  const askAtPath = (
    request: FastifyRequest<{ Querystring: Static<typeof Query> }>,
    reply: FastifyReply,
  ): void => {
    const { redirect, organization, ...conditions } = request.query
    authenticateUser(request, reply, error => {
      if (error !== undefined) return refuse(error, request, reply, redirect === 'header')
      try {
        forwardAuth.check(request.requirePrincipal(), conditions)
      } catch (refusal) {
        return void reply.send(refusal)
      }
      if (organization === undefined) return sendIdentity(request, reply)
      requireMembership(request, organization).then(
        () => sendIdentity(request, reply),
        refusal => reply.send(refusal),
      )
    })
  }

  // Envoy appends the path and the query of the client, so they do not count.
  const askBelow = (request: FastifyRequest, reply: FastifyReply): void =>
    authenticateUser(request, reply, error =>
      error === undefined ? sendIdentity(request, reply) : refuse(error, request, reply, false),
    )

  for (const method of METHODS) {
    const config = { isOpenToSites: true } as const
    app.route({ method, url: '', config, schema: { hide: true, querystring: Query }, handler: askAtPath })
    app.route({
      ...{ method, url: '/*', config, handler: askBelow },
      schema: { hide: true, params: AnyPath, querystring: Anything },
    })
  }
}

export default forwardAuthRoutes
