/** Finds the declared path of a URL and its methods, which Fastify's own router does not report. */
import type { FastifyInstance } from 'fastify'
import Router from 'find-my-way'

export interface Path {
  readonly url: string
  readonly methods: readonly string[]
}

/**
 * A second router with every path under one method.
 * @param app a host's router may ignore letter case or slashes.
 */
const routerOfPaths = (app: FastifyInstance) => {
  const {
    caseSensitive = true,
    ignoreTrailingSlash = false,
    ignoreDuplicateSlashes = false,
  } = app.initialConfig.routerOptions ?? {}
  const router = Router({
    caseSensitive,
    ignoreTrailingSlash,
    ignoreDuplicateSlashes,
    maxParamLength: Number.MAX_SAFE_INTEGER,
  })
  const byUrl = Map.groupBy(app.routeTable, ({ url }) => url)
  for (const [url, declared] of byUrl) {
    const path: Path = { url, methods: declared.flatMap(({ methods }) => methods).sort() }
    router.on('GET', url, () => undefined, path)
  }
  return router
}

/** @returns a function that finds the path of a request target; it finds none before the app is ready. */
export const pathFinder = (app: FastifyInstance): ((target: string) => Path | undefined) => {
  let router: ReturnType<typeof routerOfPaths> | null = null
  app.addHook('onReady', async () => {
    router = routerOfPaths(app)
  })
  return target => router?.find('GET', target)?.store as Path | undefined
}
