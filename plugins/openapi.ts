/** OpenAPI 3.1, generated from the routes' own schemas, at /openapi.json, and pages to read it at /docs. */
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import packageJson from '../package.json' with { type: 'json' }
import { ADMIN_KEY_HEADER } from '../src/auth/admin-keys.ts'
import { ACCESS_TOKEN_COOKIE } from './access-token.ts'

const SECURITY = {
  user: [{ bearer: [] }, { cookie: [] }],
  adminKey: [{ adminKey: [] }],
}

const ERRORS_REFERENCE = { $ref: '#/components/schemas/Errors' }

/** Statuses that a route answers because of where it stands and what it takes, not of what it does. */
const commonStatuses = ({ config, method }: RouteOptions, schema: FastifySchema): number[] => [
  400,
  ...(config?.gate === undefined ? [] : [401, 503]),
  ...(method === 'POST' || method === 'PUT' ? [403] : []),
  ...(schema.body === undefined ? [] : [408, 413, 415]),
  500,
]

const document = (schema: FastifySchema, route: RouteOptions): FastifySchema => {
  const gate = route.config?.gate
  // The last resort of plugins/error-handler.ts is no answer of its own.
  const { '5xx': _lastResort, ...declared } = schema.response as Record<string, unknown>
  const common = commonStatuses(route, schema).map(status => [
    status,
    { description: 'Errors', ...ERRORS_REFERENCE },
  ])
  return {
    ...schema,
    tags: [gate === undefined ? 'public' : gate === 'user' ? 'private' : 'admin'],
    security: gate === undefined ? [] : SECURITY[gate],
    response: { ...Object.fromEntries(common), ...declared },
  }
}

/** The page loads from this service alone; its style sheets are partly inline. Served over http as well as https. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'self'"

type Json = Record<string, unknown>

/** Keywords of src/http/validation.ts, which mean something to this service alone. */
const OWN_KEYWORDS = new Set(['normalize', 'text', 'chosenPassword'])

/** Moves every schema that has a title to the components, and leaves a reference where it stood. */
const hoist = (value: unknown, components: Json): unknown => {
  if (Array.isArray(value)) return value.map(item => hoist(item, components))
  if (typeof value !== 'object' || value === null) return value
  const copy: Json = {}
  for (const [key, inner] of Object.entries(value)) {
    // A property of such a name is a schema, a keyword is not.
    if (typeof inner === 'object' || !OWN_KEYWORDS.has(key)) copy[key] = hoist(inner, components)
  }
  if (typeof copy.title !== 'string' || copy.type !== 'object') return copy
  components[copy.title] = copy
  return { $ref: `#/components/schemas/${copy.title}` }
}

const openapi = async (app: FastifyInstance): Promise<void> => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Gatehouse', version: packageJson.version, description: packageJson.description },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          cookie: { type: 'apiKey', in: 'cookie', name: ACCESS_TOKEN_COOKIE },
          adminKey: { type: 'apiKey', in: 'header', name: ADMIN_KEY_HEADER },
        },
      },
    },
    transform: ({ schema, url, route }) => ({ schema: document(schema ?? {}, route), url }),
    transformObject: documentObject => {
      if (!('openapiObject' in documentObject)) throw new Error('The document is OpenAPI, not Swagger 2')
      const { openapiObject } = documentObject
      const schemas: Json = {}
      const paths = hoist(openapiObject.paths, schemas)
      return {
        ...openapiObject,
        paths,
        components: { ...openapiObject.components, schemas },
      } as typeof openapiObject
    },
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    theme: { title: 'Gatehouse' },
    staticCSP: CONTENT_SECURITY_POLICY,
    // The page would ask a validator on the internet about the document.
    uiConfig: { validatorUrl: null },
  })
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
}

export default fp(openapi, { name: 'openapi', dependencies: ['validation', 'unknown-routes'] })
