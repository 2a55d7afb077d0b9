/** 404 for unknown paths, 405 with an exact `Allow` for known ones (RFC 9110 §15.5.6), before the body is read. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { logError } from '#http/error-log'
import { notFoundPage } from '#http/pages/between-steps'
import { type Path, pathFinder } from '#http/paths'
import { closeIfIncomplete } from './error-handler.ts'

/** Browsers name HTML; programs that accept anything get JSON. */
const wantsPage = (request: FastifyRequest): boolean => request.accepts().type(['json', 'html']) === 'html'

/** Cheaper than `routeOptions`, which Fastify creates for every request. */
const hasParameters = (params: unknown): boolean => {
  for (const _name in params as object) return true
  return false
}

const errorFor = (path: Path | undefined): ServiceError => {
  if (path === undefined) return new ServiceError('routeNotFound')
  return new ServiceError('methodNotAllowed', { headers: { allow: path.methods.join(', ') } })
}

const notFound = async (app: FastifyInstance): Promise<void> => {
  const pathOf = pathFinder(app)

  app.addHook('onRequest', function rejectUnknownRoute(request: FastifyRequest, reply: FastifyReply, done) {
    if (!request.is404 && !hasParameters(request.params)) return done()
    const path = pathOf(request.raw.url ?? '/')
    // For `PUT /admin/users/import` Fastify finds `/admin/users/:id`, but the path is known: 405 instead of a user "import".
    if (!request.is404 && path?.url === request.routeOptions.url) return done()
    const error = errorFor(path)
    if (path !== undefined || !app.config.hasPages || !wantsPage(request)) return done(error)
    logError(error, request, error.status)
    closeIfIncomplete(request, reply)
    reply.vary('accept')
    void reply.code(error.status).sendPage(notFoundPage)
  })
  // For handlers that call `reply.callNotFound()`.
  app.setNotFoundHandler(() => {
    throw new ServiceError('routeNotFound')
  })
}

export default fp(notFound, { name: 'not-found', dependencies: ['csrf'] })
