/** Generates the OpenAPI 3.1 document from the schemas of the routes; `plugins/docs.ts` serves it. */
import { STATUS_CODES } from 'node:http'
import swagger from '@fastify/swagger'
import type { FastifyContextConfig, FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import packageJson from '../package.json' with { type: 'json' }
import { ERRORS } from '../src/errors.ts'
import { ACCESS_TOKEN_COOKIE } from '../src/http/access-token.ts'
import { ADMIN_KEY_HEADER } from '../src/http/admin-key-header.ts'
import { operationIdOf, tagOf } from '../src/http/operation-names.ts'
import { KEYWORDS } from '../src/validation/keywords.ts'
import type { MetadataSchema, MetadataSchemas } from '../src/validation/metadata.ts'
import { NDJSON } from '../src/validation/ndjson.ts'
import { NO_BODY } from './validation.ts'

const SECURITY = {
  user: [{ bearer: [] }, { cookie: [] }],
  adminKey: [{ adminKey: [] }],
}

const ERRORS_REFERENCE = { $ref: '#/components/schemas/Errors' }

/** Statuses that follow from the scope, method and limits of a route, not from its handler. */
const commonStatuses = ({ config, method }: RouteOptions): number[] => [
  400,
  // 403: without a role or a scope that the route needs.
  ...(config?.gate === undefined ? [] : [401, 403, 503]),
  ...(method === 'GET' || method === 'HEAD' ? [] : [403, 408, 413, 415]),
  ...(config?.rateLimit === undefined ? [] : [429]),
  431,
  500,
]

type Headers = Readonly<Record<string, { type: string; description: string }>>

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

/** On every response, except for requests rejected before they are counted. */
const RATE_LIMIT: Headers = {
  RateLimit: {
    type: 'string',
    description: 'Requests left for the client address: `"name";r=requests;t=seconds`',
  },
  'RateLimit-Policy': {
    type: 'string',
    description: 'The limit for a client address: `"name";q=requests;w=seconds`',
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

/** The headers of a response: those its schema declares as `headers`, and those implied by status, route and body. */
const responseHeaders = (
  { config }: RouteOptions,
  status: number,
  { headers, properties = {} }: { headers?: Headers; properties?: object },
): Headers => ({
  ...headers,
  ...(STATUSES_TO_RETRY.has(status) && RETRY_AFTER),
  ...((status === 401 || (status === 403 && config?.gate !== undefined)) && CHALLENGE),
  ...(config?.rateLimit !== undefined && RATE_LIMIT),
  ...('nextCursor' in properties && LINK),
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

const sentenceOfScope = ({ gate, scope }: FastifyContextConfig): string[] => {
  if (gate === 'user')
    return [scope === undefined ? 'API keys are not accepted.' : `API keys need the scope \`${scope}\`.`]
  return scope === undefined ? [] : [`Needs the scope \`${scope}\`.`]
}

/** The roles and the scope that a route requires, as the end of its description. */
const requirements = ({ description }: FastifySchema, { config = {} }: RouteOptions): object => {
  const sentences = [...sentenceOfRoles(config.roles), ...sentenceOfScope(config)].join(' ')
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

/** Errors are JSON, even if the other responses of the route are not. */
const asJson = (status: number, schema: object): object =>
  status < 400 || 'content' in schema ? schema : { content: { 'application/json': { schema } } }

/** Adds the name of its status and its headers to each response. */
const described = (responses: Record<string, object>, route: RouteOptions): Record<string, object> =>
  Object.fromEntries(
    Object.entries(responses).map(([status, schema]) => {
      const headers = responseHeaders(route, Number(status), schema)
      const hasHeaders = Object.keys(headers).length > 0
      const described = { description: STATUS_CODES[status], ...asJson(Number(status), schema) }
      return [status, { ...described, ...(hasHeaders && { headers }) }]
    }),
  )

const isList = (response: Readonly<Record<string, { type?: string; properties?: object }>>): boolean => {
  const { type, properties = {} } = response['200'] ?? {}
  return type === 'array' || 'results' in properties
}

/** @param url without the prefix of the service. */
const operationIdOfRoute = (
  { operationId, response }: FastifySchema,
  { method }: RouteOptions,
  url: string,
): string =>
  operationId ?? operationIdOf({ method: [method].flat()[0] ?? '', url, isList: isList(response as never) })

const document = ({ body, ...rest }: FastifySchema, route: RouteOptions, url: string): FastifySchema => {
  // Routes without a body have the schema NO_BODY, which is not documented.
  const schema = body === undefined || body === NO_BODY ? rest : { ...rest, body }
  // In a host, every route is hidden from the host's own document.
  const hide = route.config?.isDocumented === undefined ? rest.hide : !route.config.isDocumented
  const gate = route.config?.gate
  // The last resort of plugins/error-handler.ts is not documented.
  const { '5xx': _lastResort, ...declared } = schema.response as Record<string, object>
  const common = commonStatuses(route).map(status => [
    status,
    { description: 'Errors', content: { 'application/json': { schema: ERRORS_REFERENCE } } },
  ])
  return {
    ...schema,
    ...(hide !== undefined && { hide }),
    ...requestHeaders(declared),
    ...requirements(schema, route),
    ...(schema.querystring !== undefined && { querystring: optional(schema.querystring) }),
    operationId: operationIdOfRoute(schema, route, url),
    tags: schema.tags ?? [tagOf(url)],
    security: gate === undefined ? [] : SECURITY[gate],
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

type Json = Record<string, unknown>

const OWN_KEYWORDS = new Set(KEYWORDS.map(({ keyword }) => keyword))

/** Moves schemas with a title to the components, and replaces them by references. */
const hoist = (value: unknown, components: Json): unknown => {
  if (Array.isArray(value)) return value.map(item => hoist(item, components))
  if (typeof value !== 'object' || value === null) return value
  const copy: Json = {}
  for (const [key, inner] of Object.entries(value)) {
    // A property of this name has a schema, which is an object; the value of a custom keyword is not.
    if (typeof inner === 'object' || !OWN_KEYWORDS.has(key)) copy[key] = hoist(inner, components)
  }
  if (typeof copy.title !== 'string' || copy.type !== 'object') return copy
  components[copy.title] = copy
  return { $ref: `#/components/schemas/${copy.title}` }
}

/** Moves the references within a schema to its place in the document. */
const relocate = (value: unknown, base: string): unknown => {
  if (Array.isArray(value)) return value.map(item => relocate(item, base))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' && /^#(\/|$)/.test(inner)
        ? `${base}${inner.slice(1)}`
        : relocate(inner, base),
    ]),
  )
}

/** The component of a kind of metadata: the operator's schema, or any object. */
const metadataComponent = (title: string, own: MetadataSchema | null): object => {
  const { $schema: _dialect, $id: _id, ...schema } = own?.schema ?? { additionalProperties: true }
  return { title, type: 'object', ...(relocate(schema, `#/components/schemas/${title}`) as object) }
}

const metadataComponents = ({ user, app }: MetadataSchemas): Json => ({
  UserMetadata: metadataComponent('UserMetadata', user),
  AppMetadata: metadataComponent('AppMetadata', app),
})

interface Operation {
  readonly requestBody?: { required: boolean; readonly content: Readonly<Record<string, unknown>> }
}

/** An NDJSON body may have no lines, and so be absent. */
const withOptionalLines = (paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>): void => {
  for (const operation of Object.values(paths).flatMap(path => Object.values(path)))
    if (operation.requestBody !== undefined && NDJSON in operation.requestBody.content)
      operation.requestBody.required = false
}

const openapi = async (app: FastifyInstance): Promise<void> => {
  if (!app.config.hasDocs) return
  app.addHook('onReady', async () => requireUniqueOperationIds(app))
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Gatehouse', version: packageJson.version, description: packageJson.description },
      ...(app.prefix !== '' && { servers: [{ url: app.prefix }] }),
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          cookie: { type: 'apiKey', in: 'cookie', name: ACCESS_TOKEN_COOKIE },
          adminKey: { type: 'apiKey', in: 'header', name: ADMIN_KEY_HEADER },
        },
      },
    },
    transform: ({ schema, url, route }) => ({
      schema: document(schema ?? {}, route, url.slice(app.prefix.length)),
      url,
    }),
    transformObject: documentObject => {
      if (!('openapiObject' in documentObject)) throw new Error('The document is OpenAPI, not Swagger 2')
      const { openapiObject } = documentObject
      const schemas: Json = {}
      const paths = hoist(openapiObject.paths, schemas)
      withOptionalLines(paths as Parameters<typeof withOptionalLines>[0])
      return {
        ...openapiObject,
        paths,
        components: {
          ...openapiObject.components,
          schemas: { ...schemas, ...metadataComponents(app.config.metadataSchemas) },
        },
      } as typeof openapiObject
    },
  })
}

export default fp(openapi, { name: 'openapi', dependencies: ['validation', 'not-found'] })
