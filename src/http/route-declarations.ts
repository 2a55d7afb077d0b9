/** What routes declare, checked at the start: their URLs, and their `config`, once their gates are known. */
import type { FastifyContextConfig, FastifyInstance, RouteOptions } from 'fastify'
import { FeatureError } from '#storage/stored-feature'
import { isSafeMethod } from './cross-site-requests.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Who declares the routes of this instance, for errors: `the core`, or `the feature notes`. */
    readonly routeOwner: string
  }
}

const routeName = ({ method, url }: RouteOptions): string => `${[method].flat().join(', ')} ${url}`

/**
 * @param property of `config`. Plugins guard a route by it when the route is added, so a hook that sets it later is an error.
 * @param problemOf why the service must not start with a route; `null` if it may.
 */
export const checkDeclarations = (
  app: FastifyInstance,
  property: keyof FastifyContextConfig,
  problemOf: (route: RouteOptions) => string | null,
): void => {
  const routes: { readonly route: RouteOptions; readonly guardedBy: unknown }[] = []
  app.addHook('onRoute', route => void routes.push({ route, guardedBy: route.config?.[property] }))
  // The gate of a route is known only after the hooks of its scope.
  app.addHook('onReady', async () => {
    for (const { route, guardedBy } of routes) {
      const problem =
        route.config?.[property] === guardedBy
          ? problemOf(route)
          : `gets its ${property} from a hook: declare config.${property} in the route itself`
      if (problem !== null) throw new Error(`${routeName(route)} ${problem}`)
    }
  })
}

/** Refuses constraints, by which a URL could have several routes of one method: 405, the OpenAPI document and the clients know one. */
const refuseConstraints = (route: RouteOptions, owner: string): void => {
  if (Object.keys(route.constraints ?? {}).length > 0)
    throw new FeatureError(
      `The route ${routeName(route)} of ${owner} has constraints: remove them, because a URL has one route for each method`,
    )
}

/**
 * Requires that a URL has one route for each method. Fastify's own error does not say who declares the two.
 * @throws {FeatureError} when the second one is added, or when the app becomes ready.
 */
export const requireUniqueRoutes = (app: FastifyInstance): void => {
  const owners = new Map<string, string>()
  const routes: { readonly route: RouteOptions; readonly owner: string }[] = []
  app.addHook('onRoute', function (route) {
    const owner = this.routeOwner
    refuseConstraints(route, owner)
    routes.push({ route, owner })
    for (const method of [route.method].flat()) {
      // Routes that differ in the names of parameters have the same URLs.
      const key = `${method} ${route.url.replaceAll(/(?<!:):\w+/g, ':')}`
      const first = owners.get(key)
      if (first !== undefined)
        throw new FeatureError(
          `The route ${method} ${route.url} is declared twice: by ${first} and by ${owner}`,
        )
      owners.set(key, owner)
    }
  })
  // Later hooks of a folder may have added some.
  app.addHook('onReady', async () => {
    for (const { route, owner } of routes) refuseConstraints(route, owner)
  })
}

/** Whether the requests of a route count towards the limit on the writes of a user. Call it once its gate is known. */
export const countsAsWrite = ({ config, method }: RouteOptions): boolean =>
  config?.gate === 'user' && config.writeLimit !== false && ![method].flat().every(isSafeMethod)
