/**
 * Gatehouse as a Fastify plugin, for other applications: `await app.register(gatehouse, { prefix: '/auth' })`. The plugin adds
 * `app.gatehouse` to the host's instance; everything else is encapsulated below the prefix.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { addInnerPart, addOuterPart, openServices } from './app.ts'
import { ConfigError, loadConfig } from './config/config.ts'
import { type GatehouseConfig, toEnvironment } from './config/config-object.ts'
import { ServiceError } from './errors.ts'
import { isolateFromHost } from './http/encapsulation.ts'
import { type Guard, type Guards, REQUEST_DECORATORS } from './http/guards.ts'
import './http/validated-data.ts'
import { logSerializers } from './logging/logging.ts'
import type { Services } from './services.ts'
import type { User } from './users/user.ts'

/** `app.gatehouse`. */
export interface Gatehouse extends Guards {
  readonly services: Services
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly gatehouse: Gatehouse
  }
}

export interface GatehouseOptions {
  /** The path of the service, such as `/auth`. Paths outside of it belong to the host. */
  readonly prefix: string
  /** The settings, by the names of the environment variables; by default the environment of the process. */
  readonly config?: GatehouseConfig
  /** A folder with `public/`, `private/` and `admin/`: an absolute path, a file URL, or relative to the working directory. */
  readonly routes?: string | URL
}

const checkPrefix = (prefix: unknown): string => {
  if (typeof prefix !== 'string' || !/^\/[^:*?#\s]*[^:*?#\s/]$/.test(prefix))
    throw new Error(
      `The prefix must be a path such as /auth, without parameters, not ${JSON.stringify(prefix)}`,
    )
  return prefix
}

/** @throws {Error} if another plugin has taken a name of the service. */
const checkDecorators = (host: FastifyInstance): void => {
  if (host.hasDecorator('gatehouse'))
    throw new Error('Gatehouse is already registered here: register each service in a scope of its own')
  const taken = REQUEST_DECORATORS.find(name => host.hasRequestDecorator(name))
  if (taken !== undefined)
    throw new Error(
      `request.${taken} belongs to another plugin: register it and Gatehouse in scopes of their own`,
    )
}

const folderOf = (routes: string | URL | undefined): string | undefined => {
  if (routes === undefined) return undefined
  return routes instanceof URL || routes.startsWith('file:') ? fileURLToPath(routes) : resolve(routes)
}

const plugin = async (host: FastifyInstance, options: GatehouseOptions): Promise<void> => {
  const prefix = checkPrefix(options.prefix)
  checkDecorators(host)
  const config = loadConfig(toEnvironment(options.config), host.prefix + prefix)
  const logger = host.log
  const services = await openServices(config, logger)
  let inner: FastifyInstance = host
  const authentication = addOuterPart(host, config, services, () => inner)
  for (const warning of config.warnings) logger.warn(warning)
  host.register(
    async function service(scope) {
      inner = scope
      await isolateFromHost(scope)
      addInnerPart(scope, { config, services, authentication, routes: folderOf(options.routes) })
    },
    // Fastify's type knows only serializers that return text.
    { prefix, logSerializers: logSerializers as object as Record<string, () => string> },
  )
}

export default fp(plugin, { name: 'gatehouse', fastify: '5.x' })

export { ConfigError, type GatehouseConfig, type Guard, ServiceError, type Services, type User }
