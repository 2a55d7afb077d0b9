/** buildApp: the only way the service is put together, for the server and for every test. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import autoload from '@fastify/autoload'
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
import type { DestinationStream } from 'pino'
import type { CleanUpPace } from './accounts/clean-up.ts'
import type { Config } from './config/config.ts'
import { serverOptions } from './http/server-options.ts'
import { createLogger } from './logging/logging.ts'
import type { PasswordHasher } from './passwords/hasher.ts'
import type { RateLimits } from './rate-limits/limits.ts'
import { createServices, type Services } from './services.ts'
import { openStorage } from './storage/open.ts'
import type { Storage } from './storage/storage.ts'

export type Gate = 'user' | 'adminKey'

declare module 'fastify' {
  interface FastifyInstance {
    readonly config: Config
    readonly services: Services
    /** Every route, as it is declared; complete once the app is ready. */
    readonly routeTable: readonly DeclaredRoute[]
  }
  interface FastifyContextConfig {
    /** The gate that guards the route; set by the scope's autohooks, absent on public routes. */
    gate?: Gate
  }
}

export interface DeclaredRoute {
  readonly url: string
  readonly methods: readonly string[]
  /** The declaration; Fastify uses one object for a path with and without its last slash, so the URL is not in it. */
  readonly options: RouteOptions
}

/** What a caller may bring in place of what the configuration would make. */
export interface Parts {
  readonly storage?: Storage
  readonly clock?: () => number
  readonly hashing?: PasswordHasher
  readonly rateLimits?: RateLimits
  readonly cleanUpPace?: CleanUpPace
  /** Where log lines go instead of standard output. */
  readonly logStream?: DestinationStream
}

const PROJECT = join(import.meta.dirname, '..')

/** Autoload passes over a gate file that is missing or misnamed, and the scope's routes would be open to everybody. */
const requireGateFile = (name: string): void => {
  const file = join(PROJECT, 'routes', name, 'autohooks.ts')
  if (!existsSync(file))
    throw new Error(`routes/${name}/autohooks.ts is missing: it is the gate of its scope`)
}

/** A folder of routes behind one gate, which its `autohooks.ts` puts before every route in it and in its subfolders. */
const scope = (app: FastifyInstance, name: string, gate: Gate | undefined, prefix = ''): void => {
  app.register(async function routesOfScope(scoped) {
    const routes: RouteOptions[] = []
    scoped.addHook('onRoute', route => void routes.push(route))
    // A gate file that sets no gate is found here, before the first request.
    scoped.addHook('onReady', async () => {
      const open = routes.find(({ config }) => config?.gate !== gate)
      if (open !== undefined)
        throw new Error(`${open.url} in routes/${name} is not behind the gate of its scope`)
    })
    await scoped.register(autoload, {
      dir: join(PROJECT, 'routes', name),
      autoHooks: true,
      cascadeHooks: true,
      // A folder `_id` is `/:id`.
      routeParams: true,
      matchFilter: /[/\\]routes\.ts$/,
      options: { prefix },
    })
  })
}

/**
 * Puts the service together, ready to `listen` or `inject`. Closing it writes what is due and lets go of everything.
 * @throws {Error} when the store cannot be opened or a scope has no gate.
 */
export const buildApp = async (config: Config, parts: Parts = {}): Promise<FastifyInstance> => {
  const { clock = Date.now } = parts
  requireGateFile('private')
  requireGateFile('admin')
  const logger = createLogger(config, parts.logStream)
  const storage = parts.storage ?? (await openStorage(config.storage, config.databaseConnections))
  const app = Fastify(serverOptions(config, logger))
  let services: Services
  try {
    services = createServices(config, {
      storage,
      clock,
      logger,
      hasher: parts.hashing,
      rateLimits: parts.rateLimits,
      cleanUpPace: parts.cleanUpPace,
    })
  } catch (error) {
    await storage.close()
    throw error
  }
  app.log = logger
  app.decorate('config', config)
  app.decorate('services', services)
  const routeTable: DeclaredRoute[] = []
  app.decorate('routeTable', routeTable)
  app.addHook('onRoute', options => {
    routeTable.push({ url: options.url, methods: [options.method].flat(), options })
  })
  app.addHook('onClose', () => services.close())

  app.register(autoload, { dir: join(PROJECT, 'plugins'), dirNameRoutePrefix: false })
  scope(app, 'public', undefined)
  scope(app, 'private', 'user')
  scope(app, 'admin', 'adminKey', '/admin')
  return app
}
