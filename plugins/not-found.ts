/** 404 for unknown paths; 405 with an exact `Allow` for known ones (RFC 9110 §15.5.6), before a body is looked at. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import Router from 'find-my-way'
import type { DeclaredRoute } from '../src/app.ts'
import { ServiceError } from '../src/errors.ts'

interface Path {
  readonly url: string
  readonly methods: string[]
}

/** Fastify's own router tells nothing about other methods; the same kind of router, with every path under one method. */
const routerOfPaths = (routes: readonly DeclaredRoute[]) => {
  const router = Router({ maxParamLength: Number.MAX_SAFE_INTEGER })
  const byUrl = Map.groupBy(routes, ({ url }) => url)
  for (const [url, declared] of byUrl) {
    const path: Path = { url, methods: declared.flatMap(({ methods }) => methods) }
    router.on('GET', url, () => undefined, path)
  }
  return router
}

/** Cheaper than asking for the route's options, which Fastify makes anew for every request. */
const hasParameters = (params: unknown): boolean => {
  for (const _name in params as object) return true
  return false
}

const unknownRoutes = async (app: FastifyInstance): Promise<void> => {
  let paths = routerOfPaths([])
  app.addHook('onReady', async () => {
    paths = routerOfPaths(app.routeTable)
  })

  const refusal = (path: Path | undefined): ServiceError => {
    if (path === undefined) return new ServiceError('routeNotFound')
    return new ServiceError('methodNotAllowed', { headers: { allow: path.methods.toSorted().join(', ') } })
  }

  app.addHook('onRequest', function refuseUnknownRoute(request: FastifyRequest, _reply: FastifyReply, done) {
    if (!request.is404 && !hasParameters(request.params)) return done()
    const path = paths.find('GET', request.raw.url ?? '/')?.store as Path | undefined
    // `PUT /admin/users/import` is no change of a user named "import", though the router finds `/admin/users/:id` for it.
    if (!request.is404 && path?.url === request.routeOptions.url) return done()
    done(refusal(path))
  })
  // For routes that find only later that there is nothing, such as those of files.
  app.setNotFoundHandler(() => {
    throw new ServiceError('routeNotFound')
  })
}

export default fp(unknownRoutes, { name: 'not-found', dependencies: ['csrf'] })
