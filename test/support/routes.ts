import type { FastifyInstance } from 'fastify'
import { BUILT_IN_FEATURES } from '#features/built-in'

export interface LiveRoute {
  readonly method: string
  readonly url: string
  readonly gate: 'user' | 'adminKey' | undefined
  /** The name of its rate limit. */
  readonly rateLimit: string | undefined
  /** Whether the route is exempt from the limit on the writes of its user. */
  readonly isExemptWrite: boolean
  /** Whether it needs a recent proof of identity. */
  readonly reauthenticate: boolean
  /** Any of which the user needs. */
  readonly roles: readonly string[] | undefined
  /** That a key needs. */
  readonly scope: string | undefined
  /** Scopes of properties of its body, each once. */
  readonly fieldScopes: readonly string[]
  /** Whether it declares a body. */
  readonly hasBody: boolean
  /** Routes of the documentation, which are not part of the contract. */
  readonly documentation: boolean
  /** A hosted page, which is for people. */
  readonly page: boolean
  /** A route of a feature in `src/features/own.ts`. The documents list the others. */
  readonly ofFeature: boolean
}

const BUILT_IN: ReadonlySet<string | undefined> = new Set([
  undefined,
  ...BUILT_IN_FEATURES.map(({ name }) => name),
])

const DOCUMENTATION = /^\/(?:docs|openapi\.json)/

/** Every live route of an app. */
export const liveRoutes = ({ routeTable }: FastifyInstance): LiveRoute[] =>
  routeTable.flatMap(({ methods, url, options }) =>
    methods.map(method => ({
      method,
      url,
      gate: options.config?.gate,
      scope: options.config?.scope,
      fieldScopes: [...new Set(Object.values(options.config?.fieldScopes ?? {}))],
      hasBody: options.schema?.body !== undefined,
      rateLimit: options.config?.rateLimit,
      isExemptWrite: options.config?.writeLimit === false,
      reauthenticate: options.config?.reauthenticate === true,
      roles: options.config?.roles,
      documentation: DOCUMENTATION.test(url),
      page: options.schema?.hide === true && !DOCUMENTATION.test(url),
      ofFeature: !BUILT_IN.has(options.config?.feature),
    })),
  )
