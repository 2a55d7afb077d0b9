import type { FastifyInstance } from 'fastify'

export interface LiveRoute {
  readonly method: string
  readonly url: string
  readonly gate: 'user' | 'adminKey' | undefined
  /** Any of which the user needs. */
  readonly roles: readonly string[] | undefined
  /** Routes of the documentation, which are not part of the contract. */
  readonly documentation: boolean
}

/** Every live route of an app. */
export const liveRoutes = ({ routeTable }: FastifyInstance): LiveRoute[] =>
  routeTable.flatMap(({ methods, url, options }) =>
    methods.map(method => ({
      method,
      url,
      gate: options.config?.gate,
      roles: options.config?.roles,
      documentation: url.startsWith('/docs') || url === '/openapi.json',
    })),
  )
