/**
 * The baseline: Fastify alone, configured as in its own benchmarks, with one route that sends a constant object. The environment
 * chooses the route (ROUTE); CHALLENGE is the header field of `unauthorized`.
 */
import Fastify, { type RouteOptions } from 'fastify'
import { ERRORS, errorBody } from '#base/errors'
import { newFields } from '#core/users/fields'
import { serializeAccount } from '#core/users/serializers'
import { userScopesOf } from '#feature/assembly'
import { allFeatures } from '#features/built-in'
import { Account, ErrorBody, Introspection } from '../routes/schemas.ts'

const at = Date.UTC(2026, 0, 1)

/** As long as those of the bench's users. */
const ACCOUNT = serializeAccount({
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  email: 'user00000000@example.com',
  ...newFields({ firstName: 'First00000000', lastName: 'Last00000000' }),
  emailVerified: true,
  hasPassword: true,
  disabled: false,
  factors: [],
  createdAt: at,
  updatedAt: at,
  lastRequestAt: at,
})

const { status, field, message } = ERRORS.signInRequired

interface Baseline {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly status: number
  /** Header fields in addition to those of every response. */
  readonly headers: Readonly<Record<string, string>>
  /** The response schema of the service's route, so that serialization costs the same. */
  readonly schema: object
  readonly requestBody?: object
  readonly body: unknown
}

const BASELINES: Readonly<Record<string, Baseline>> = {
  account: {
    ...{ method: 'GET', url: '/account', status: 200, schema: Account, body: ACCOUNT },
    headers: { 'cache-control': 'no-store', etag: '"1"' },
  },
  unauthorized: {
    ...{ method: 'GET', url: '/account', status, schema: ErrorBody, body: errorBody(field, message) },
    headers: { 'www-authenticate': process.env.CHALLENGE ?? '' },
  },
  introspection: {
    ...{ method: 'POST', url: '/admin/introspect', status: 200, schema: Introspection },
    headers: { 'cache-control': 'no-store' },
    requestBody: { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] },
    body: {
      active: true,
      token_type: 'Bearer',
      sub: ACCOUNT.id,
      scope: Object.keys(userScopesOf(allFeatures())).join(' '),
      roles: [],
      exp: 1_769_817_600,
      iat: 1_767_225_600,
      auth_time: 1_767_225_600,
      amr: ['pwd'],
      sid: ACCOUNT.id,
    },
  },
}

/** Of every response. An id is random in the service: here it only has the same length. */
const COMMON_FIELDS = { 'x-content-type-options': 'nosniff', 'x-request-id': '0'.repeat(20) }

const routeOf = ({ method, url, status, headers, schema, requestBody, body }: Baseline): RouteOptions => {
  const fields = Object.entries({ ...COMMON_FIELDS, ...headers })
  return {
    method,
    url,
    schema: { response: { [status]: schema }, ...(requestBody !== undefined && { body: requestBody }) },
    handler(_request, reply) {
      for (const [name, value] of fields) reply.header(name, value)
      if (status !== 200) reply.code(status)
      reply.send(body)
    },
  }
}

const app = Fastify({ logger: false })
app.route(routeOf(BASELINES[process.env.ROUTE ?? ''] as Baseline))
const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) })
process.stdout.write(`Server listening at ${url}\n`)
