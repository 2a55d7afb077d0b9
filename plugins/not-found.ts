/** 404 for unknown paths, 405 with an exact `Allow` for known ones (RFC 9110 §15.5.6), before the body is read. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import Router from 'find-my-way'
import type { DeclaredRoute } from '../src/app.ts'
import { ServiceError } from '../src/errors.ts'

interface Path {
  readonly url: string
  readonly methods: string[]
}

/**
 * A second router with every path under one method, because Fastify's own does not report the methods of a path.
 * @param app a host's router may ignore letter case or slashes.
 */
const routerOfPaths = (routes: readonly DeclaredRoute[], app: FastifyInstance) => {
  const {
    caseSensitive = true,
    ignoreTrailingSlash = false,
    ignoreDuplicateSlashes = false,
  } = app.initialConfig.routerOptions ?? {}
  const router = Router({
    ...{ caseSensitive, ignoreTrailingSlash, ignoreDuplicateSlashes },
    maxParamLength: Number.MAX_SAFE_INTEGER,
  })
  const byUrl = Map.groupBy(routes, ({ url }) => url)
  for (const [url, declared] of byUrl) {
    const path: Path = { url, methods: declared.flatMap(({ methods }) => methods) }
    router.on('GET', url, () => undefined, path)
  }
  return router
}

/** Cheaper than `routeOptions`, which Fastify creates for every request. */
const hasParameters = (params: unknown): boolean => {
  for (const _name in params as object) return true
  return false
}

const notFound = async (app: FastifyInstance): Promise<void> => {
  let paths = routerOfPaths([], app)
  app.addHook('onReady', async () => {
    paths = routerOfPaths(app.routeTable, app)
  })

  const errorFor = (path: Path | undefined): ServiceError => {
    if (path === undefined) return new ServiceError('routeNotFound')
    return new ServiceError('methodNotAllowed', { headers: { allow: path.methods.toSorted().join(', ') } })
  }

  app.addHook('onRequest', function rejectUnknownRoute(request: FastifyRequest, _reply: FastifyReply, done) {
    if (!request.is404 && !hasParameters(request.params)) return done()
    const path = paths.find('GET', request.raw.url ?? '/')?.store as Path | undefined
    // For `PUT /admin/users/import` Fastify finds `/admin/users/:id`, but the path is known: 405 instead of a user "import".
    if (!request.is404 && path?.url === request.routeOptions.url) return done()
    done(errorFor(path))
  })
  // For handlers that call `reply.callNotFound()`.
  app.setNotFoundHandler(() => {
    throw new ServiceError('routeNotFound')
  })
}

export default fp(notFound, { name: 'not-found', dependencies: ['csrf'] })
