/** An application of another team that embeds Gatehouse below `/auth`. */
import { join } from 'node:path'
import Fastify, {
  type FastifyInstance,
  type FastifyServerOptions,
  type LightMyRequestResponse,
} from 'fastify'
import gatehouse, { type GatehouseConfig, type GatehouseOptions } from '../../src/gatehouse.ts'
import { ADMIN_KEY, type Context, freshEmail, JWT_SECRET, PASSWORD, temporaryFolder } from './build.ts'

export const hostConfig = (t: Context): GatehouseConfig => ({
  NODE_ENV: 'test',
  DATABASE_URL: `sqlite:${join(temporaryFolder(t), 'test.db')}`,
  ADMIN_KEY,
  JWT_SECRET,
  RATE_LIMIT: 'off',
  MAIL_URL: 'off',
})

export interface HostOptions extends Partial<GatehouseOptions> {
  readonly server?: FastifyServerOptions
  /** Runs before Gatehouse is registered. */
  readonly before?: (host: FastifyInstance) => unknown
}

/** A host, closed with the test. Routes can be added to it before its first request. */
export const buildHost = async (
  t: Context,
  { server = {}, before, config, ...options }: HostOptions = {},
): Promise<FastifyInstance> => {
  // Teardowns run in reverse: the host closes before its folder is removed.
  const settings = { ...hostConfig(t), ...config }
  // No limit, as in the service itself: on a busy machine a start takes as long as it takes.
  const host = Fastify({ pluginTimeout: 0, ...server })
  t.teardown(() => host.close())
  await before?.(host)
  await host.register(gatehouse, { prefix: '/auth', config: settings, ...options })
  return host
}

export const signUpAt = (
  host: FastifyInstance,
  prefix = '/auth',
  fields: object = {},
): Promise<LightMyRequestResponse> =>
  host.inject({
    method: 'POST',
    url: `${prefix}/account/sign-up`,
    payload: { email: freshEmail('host'), password: PASSWORD, firstName: 'Ada', ...fields },
  })

/** Signs up at the host. @returns the access token. */
export const tokenAt = async (host: FastifyInstance, prefix = '/auth', fields = {}): Promise<string> => {
  const response = await signUpAt(host, prefix, fields)
  if (response.statusCode !== 201)
    throw new Error(`sign-up returned ${response.statusCode}: ${response.body}`)
  return response.json().accessToken
}
