/** Generates the OpenAPI 3.1 document from the schemas of the routes, when it is first requested; `plugins/docs.ts` serves it. */
import swagger from '@fastify/swagger'
import Fastify, {
  type FastifyContextConfig,
  type FastifyInstance,
  type FastifySchema,
  type RouteOptions,
} from 'fastify'
import fp from 'fastify-plugin'
import { ERRORS } from '#base/errors'
import type { ScopeDescriptions } from '#core/auth/scopes'
import { ADMIN_KEY_HEADER } from '#http/admin-key-header'
import { STATUS_CODES } from '#http/node-http'
import { completeBodies, type Paths } from '#http/openapi/bodies'
import { hoist, type Json, metadataComponents } from '#http/openapi/components'
import { errorExample } from '#http/openapi/error-examples'
import { operationIdOf, tagOf } from '#http/openapi/operation-names'
import { countsAsWrite } from '#http/route-declarations'
import { ACCESS_TOKEN_COOKIE } from '#http/token-extraction'
import { ErrorBody } from '#http/validation/schemas'
import packageJson from '../package.json' with { type: 'json' }
import type { Services } from '../src/services.ts'
import { NO_BODY } from './validation.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Generates the document. Absent with `DOCS=off`. */
    readonly openApiDocument: () => Promise<object>
  }
}

const SESSION = [{ bearer: [] }, { cookie: [] }]

/** The credentials that a route accepts. Its description names the scope: Spectral accepts scopes of OAuth alone here. */
const securityOf = ({ gate, scope, client }: FastifyContextConfig): Record<string, string[]>[] => {
  if (client !== undefined) return [{ bearer: [] }]
  if (gate === undefined) return []
  if (gate === 'adminKey') return [{ adminKey: [] }]
  return scope === undefined ? SESSION : [...SESSION, { apiKey: [] }]
}

const listOf = (scopes: ScopeDescriptions): string =>
  Object.entries(scopes)
    .map(([name, description]) => `- \`${name}\`: ${description}`)
    .join('\n')

const securitySchemes = ({ userScopes, adminScopes }: Services) =>
  ({
    bearer: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'The access token of a session, from sign-up or sign-in',
    },
    cookie: {
      type: 'apiKey',
      in: 'cookie',
      name: ACCESS_TOKEN_COOKIE,
      description: 'The access token of a session, in the cookie that sign-up and sign-in set',
    },
    apiKey: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'API key',
      description: `An API key of a user. It has some of these scopes:\n\n${listOf(userScopes)}`,
    },
    adminKey: {
      type: 'apiKey',
      in: 'header',
      name: ADMIN_KEY_HEADER,
      description: `\`ADMIN_KEY\`, which has every scope, or an admin key with some of them:\n\n${listOf(adminScopes)}`,
    },
  }) as const

const isLimited = (route: RouteOptions): boolean =>
  route.config?.rateLimit !== undefined || countsAsWrite(route)

/** Statuses that follow from the scope, method and limits of a route, not from its handler. */
const commonStatuses = (route: RouteOptions): number[] => [
  400,
  // 403: without a role or a scope that the route needs.
  ...(route.config?.gate === undefined ? [] : [401, 403, 503]),
  ...(route.method === 'GET' || route.method === 'HEAD' ? [] : [403, 408, 413, 415]),
  ...(isLimited(route) ? [429] : []),
  431,
  500,
]

type Headers = Readonly<Record<string, { type: string; description: string }>>

const REQUEST_ID: Headers = {
  'X-Request-Id': { type: 'string', description: 'The id of the request, which its log lines have' },
}

const RETRY_AFTER: Headers = {
  'Retry-After': { type: 'integer', description: 'Seconds to wait before retrying' },
}

const CHALLENGE: Headers = {
  'WWW-Authenticate': {
    type: 'string',
    description:
      'The accepted authentication scheme (RFC 9110 §11.6.1); with 403, the scope that a key lacks (RFC 6750 §3)',
  },
}

/** Headers of every response, except to requests that are rejected before they are counted. */
const RATE_LIMIT: Headers = {
  RateLimit: {
    type: 'string',
    description:
      'Requests left for the client address, or for the user: `"name";r=requests;t=seconds`, for each limit',
  },
  'RateLimit-Policy': {
    type: 'string',
    description: 'The limits for a client address, or for a user: `"name";q=requests;w=seconds`',
  },
}

const LINK: Headers = {
  Link: { type: 'string', description: 'The next page, with `rel="next"`; absent on the last page' },
}

const STATUSES_TO_RETRY = new Set<number>(
  Object.values(ERRORS)
    .filter(error => 'retryAfter' in error)
    .map(({ status }) => status),
)

interface ResponseSchema {
  readonly headers?: Headers
  readonly properties?: object
  /** By media type, where there are several. */
  readonly content?: Readonly<Record<string, { readonly schema: { readonly properties?: object } }>>
}

/** The headers of a response: those its schema declares as `headers`, and those implied by status, route and body. */
const responseHeaders = (
  route: RouteOptions,
  status: number,
  { headers, properties, content }: ResponseSchema,
): Headers => ({
  ...REQUEST_ID,
  ...headers,
  ...(STATUSES_TO_RETRY.has(status) && RETRY_AFTER),
  ...((status === 401 || (status === 403 && route.config?.gate !== undefined)) && CHALLENGE),
  ...(isLimited(route) && RATE_LIMIT),
  ...('nextCursor' in (content?.['application/json']?.schema.properties ?? properties ?? {}) && LINK),
})

const IF_MATCH = {
  type: 'object',
  properties: {
    'If-Match': { type: 'string', description: 'Change only if the ETag is one of these (RFC 9110 §13.1.1)' },
  },
}

/** The optional request header. It is not part of the route's own schema, because Fastify would validate it there. */
const requestHeaders = (response: Readonly<Record<string, unknown>>): object =>
  '412' in response ? { headers: IF_MATCH } : {}

const sentenceOfRoles = (roles: readonly string[] | undefined): string[] => {
  if (roles === undefined) return []
  const names = roles.map(role => `\`${role}\``).join(', ')
  return [roles.length === 1 ? `Needs the role ${names}.` : `Needs one of the roles ${names}.`]
}

const sentenceOfFields = ([scope, fields]: [string, string[]]): string =>
  `${fields.map(name => `\`${name}\``).join(', ')} ${fields.length === 1 ? 'needs' : 'need'} \`${scope}\` instead.`

const sentencesOfScope = ({ gate, scope, fieldScopes = {} }: FastifyContextConfig): string[] => {
  if (gate === undefined) return ['Needs no credentials.']
  if (gate === 'user')
    return [scope === undefined ? 'API keys are not accepted.' : `API keys need the scope \`${scope}\`.`]
  if (scope === undefined) return []
  const fields = Map.groupBy(Object.keys(fieldScopes), name => fieldScopes[name] ?? scope)
  return [`Needs the scope \`${scope}\`.`, ...Array.from(fields, sentenceOfFields)]
}

/** The roles and the scopes that a route requires, as the end of its description. */
const requirements = ({ description }: FastifySchema, { config = {} }: RouteOptions): object => {
  const sentences = [...sentenceOfRoles(config.roles), ...sentencesOfScope(config)].join(' ')
  if (sentences === '') return {}
  return { description: description === undefined ? sentences : `${description}\n\n${sentences}` }
}

/** Parameters with a default are optional: the validator adds them before it checks `required`. */
const optional = (querystring: unknown): unknown => {
  const {
    properties = {},
    required = [],
    ...others
  } = querystring as {
    properties?: Record<string, { default?: unknown }>
    required?: string[]
  }
  return { ...others, properties, required: required.filter(name => properties[name]?.default === undefined) }
}

type Responses = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** The content of an error: JSON, even if the other responses of the route are not. */
const errorContent = ({ examples }: Responses[string], route: RouteOptions, status: number): object => {
  const [example = errorExample(route, status)] = (examples as readonly object[] | undefined) ?? []
  return { content: { 'application/json': { schema: ErrorBody, ...(example && { example }) } } }
}

const contentOf = ({ headers: _, content, ...schema }: Responses[string]): object => {
  if (content !== undefined) return { content }
  return schema.type === 'null' ? { type: 'null' } : { content: { 'application/json': { schema } } }
}

const described = (responses: Responses, route: RouteOptions): Record<string, object> =>
  Object.fromEntries(
    Object.entries(responses).map(([name, response]) => {
      const status = Number(name)
      const content = status < 400 ? contentOf(response) : errorContent(response, route, status)
      return [
        name,
        { description: STATUS_CODES[name], ...content, headers: responseHeaders(route, status, response) },
      ]
    }),
  )

const isList = (response: unknown): boolean => {
  const { type, properties = {} } = (response as Responses)['200'] ?? {}
  return type === 'array' || 'results' in (properties as object)
}

/** @param url without the prefix of the service. */
const operationIdOfRoute = (
  { operationId, response }: FastifySchema,
  { method }: RouteOptions,
  url: string,
): string => operationId ?? operationIdOf({ method: [method].flat()[0] ?? '', url, isList: isList(response) })

const document = ({ body, ...rest }: FastifySchema, route: RouteOptions, url: string): FastifySchema => {
  // Routes without a body have the schema NO_BODY, which is not documented.
  const schema = body === undefined || body === NO_BODY ? rest : { ...rest, body }
  // In a host, every route is hidden from the host's own document.
  const hide = route.config?.isDocumented === undefined ? rest.hide : !route.config.isDocumented
  // The last resort of plugins/error-handler.ts is not documented.
  const { '5xx': _lastResort, ...declared } = schema.response as Record<string, object>
  const common = commonStatuses(route).map(status => [status, {}])
  return {
    ...schema,
    ...(hide !== undefined && { hide }),
    ...requestHeaders(declared),
    ...requirements(schema, route),
    ...(schema.querystring !== undefined && { querystring: optional(schema.querystring) }),
    operationId: operationIdOfRoute(schema, route, url),
    tags: schema.tags ?? [tagOf(url)],
    security: securityOf(route.config ?? {}),
    response: described({ ...Object.fromEntries(common), ...declared }, route),
  }
}

/** @throws {Error} if two routes have one operationId, from which client generators would make one method. */
const requireUniqueOperationIds = ({ routeTable, prefix }: FastifyInstance): void => {
  const routes = new Map<string, string>()
  for (const { methods, url, options } of routeTable) {
    const schema = options.schema ?? {}
    if (schema.hide || methods.includes('HEAD')) continue
    const id = operationIdOfRoute(schema, options, url.slice(prefix.length))
    const route = `${methods} ${url}`
    const other = routes.get(id)
    if (other !== undefined)
      throw new Error(`${other} and ${route} have the operationId ${id}: declare another one in a schema`)
    routes.set(id, route)
  }
}

const tagsOf = (paths: Paths): { name: string; description: string }[] => {
  const folders = new Map<string, Set<string>>()
  for (const [path, operations] of Object.entries(paths))
    for (const tag of Object.values(operations).flatMap(({ tags }) => tags)) {
      const [folder = ''] = /^(\/admin)?\/[^/]*/.exec(path) ?? []
      folders.set(tag, (folders.get(tag) ?? new Set()).add(`\`${folder}\``))
    }
  return Array.from(folders, ([name, found]) => ({
    name,
    description: `Routes at ${[...found].join(', ')}`,
  }))
}

/**
 * The routes on an instance of their own, which never listens: @fastify/swagger describes the routes that are declared after it, and
 * loads its parsers when it is registered, although few processes are ever asked for the document.
 */
const generate = async (app: FastifyInstance): Promise<object> => {
  const { metadataSchemas, productName, publicUrl } = app.config
  const described = Fastify({ exposeHeadRoutes: false })
  described.setValidatorCompiler(() => () => true)
  described.setSerializerCompiler(() => JSON.stringify)
  await described.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Gatehouse',
        version: packageJson.version,
        description: packageJson.description,
        license: { name: 'MIT', identifier: packageJson.license },
        contact: { name: `The operator of ${productName}`, url: publicUrl },
      },
      // Relative, so that pages and clients call the host that they have the document from.
      servers: [{ url: app.prefix || '/', description: 'This instance' }],
      components: { securitySchemes: securitySchemes(app.services) },
    },
    transform: ({ schema, url, route }) => ({
      schema: document(schema ?? {}, route, url.slice(app.prefix.length)),
      url,
    }),
    transformObject: documentObject => {
      if (!('openapiObject' in documentObject)) throw new Error('The document is OpenAPI, not Swagger 2')
      const { openapiObject } = documentObject
      const paths = openapiObject.paths as unknown as Paths
      completeBodies(paths, metadataSchemas)
      const schemas: Json = {}
      return {
        ...openapiObject,
        tags: tagsOf(paths),
        paths: hoist(paths, schemas),
        components: {
          ...openapiObject.components,
          schemas: { ...schemas, ...metadataComponents(metadataSchemas) },
        },
      } as typeof openapiObject
    },
  })
  // One declaration stands for a path with and without its trailing slash.
  for (const { method, url, schema = {}, config = {} } of new Set(
    app.routeTable.map(({ options }) => options),
  ))
    if (method !== 'HEAD') described.route({ method, url, schema, config, handler: async () => undefined })
  await described.ready()
  return described.swagger()
}

const openapi = async (app: FastifyInstance): Promise<void> => {
  if (!app.config.hasDocs) return
  app.addHook('onReady', async () => requireUniqueOperationIds(app))
  app.decorate('openApiDocument', () => generate(app))
}

export default fp(openapi, { name: 'openapi', dependencies: ['validation', 'not-found'] })
