/** What routes declare in their `config`: checked at the start, once their gates are known. */
import type { FastifyContextConfig, FastifyInstance, RouteOptions } from 'fastify'
import { isSafeMethod } from './csrf.ts'

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

/** Whether the requests of a route count towards the limit on the writes of a user. Call it once its gate is known. */
export const countsAsWrite = ({ config, method }: RouteOptions): boolean =>
  config?.gate === 'user' && config.writeLimit !== false && ![method].flat().every(isSafeMethod)
