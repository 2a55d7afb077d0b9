/** Assembles the service, for the server and for every test: store, services, plugins, and routes by scope. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import autoload from '@fastify/autoload'
import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify'
import type { DestinationStream } from 'pino'
import type { CleanUpPace } from './accounts/clean-up.ts'
import type { Config } from './config/config.ts'
import { checkFeatures, type Feature, type ServicesOf } from './feature.ts'
import { FEATURES } from './features.ts'
import { serverOptions } from './http/server-options.ts'
import { createLogger } from './logging/logging.ts'
import type { PasswordHasher } from './passwords/hasher.ts'
import type { RateLimits } from './rate-limits/limits.ts'
import { type CoreServices, createServices } from './services.ts'
import { openStorage } from './storage/open.ts'
import type { Storage } from './storage/storage.ts'

/** `app.services`: those of the core and of the features in `src/features.ts`. */
export type Services = CoreServices & ServicesOf<typeof FEATURES>

export type Gate = 'user' | 'adminKey'

declare module 'fastify' {
  interface FastifyInstance {
    readonly config: Config
    readonly services: Services
    /** Every declared route; complete once the app is ready. */
    readonly routeTable: readonly DeclaredRoute[]
  }
  interface FastifyContextConfig {
    /** The gate that guards the route; set by the scope's autohooks, absent on public routes. */
    gate?: Gate
  }
}

interface Scope {
  /** The gate that `autohooks.ts` of the folder applies to every route in it and in its subfolders. */
  readonly gate?: Gate
  readonly prefix?: string
}

/** The folders of `routes/`. */
export const SCOPES: Readonly<Record<string, Scope>> = {
  public: {},
  private: { gate: 'user' },
  admin: { gate: 'adminKey', prefix: '/admin' },
}

export interface DeclaredRoute {
  readonly url: string
  readonly methods: readonly string[]
  /** The declaration. Its URL is not reliable: Fastify uses one object for a path with and without its trailing slash. */
  readonly options: RouteOptions
}

/** Replacements for parts that the configuration would create. */
export interface AppOptions {
  /** Default: those of `src/features.ts`. */
  readonly features?: readonly Feature[]
  readonly storage?: Storage
  readonly clock?: () => number
  readonly hasher?: PasswordHasher
  readonly rateLimits?: RateLimits
  readonly cleanUpPace?: CleanUpPace
  /** The destination of log lines, by default standard output. */
  readonly logStream?: DestinationStream
}

const ROOT = join(import.meta.dirname, '..')

/** Autoload ignores a missing or misnamed gate file, which would leave the routes of the scope open to everybody. */
const requireGateFiles = (): void => {
  for (const [name, { gate }] of Object.entries(SCOPES))
    if (gate !== undefined && !existsSync(join(ROOT, 'routes', name, 'autohooks.ts')))
      throw new Error(`routes/${name}/autohooks.ts is missing: it is the gate of its scope`)
}

const registerScope = (app: FastifyInstance, name: string, { gate, prefix = '' }: Scope): void => {
  app.register(async function routesOfScope(scoped) {
    const routes: RouteOptions[] = []
    scoped.addHook('onRoute', route => void routes.push(route))
    // Detects a gate file that sets no gate, before the first request.
    scoped.addHook('onReady', async () => {
      const open = routes.find(({ config }) => config?.gate !== gate)
      if (open !== undefined)
        throw new Error(`${open.url} in routes/${name} is not behind the gate of its scope`)
    })
    await scoped.register(autoload, {
      dir: join(ROOT, 'routes', name),
      autoHooks: true,
      cascadeHooks: true,
      // The folder `_id` becomes `/:id`.
      routeParams: true,
      matchFilter: /[/\\]routes\.ts$/,
      options: { prefix },
    })
  })
}

/**
 * Builds the app, ready to `listen` or `inject`. `app.close()` flushes pending writes and releases all resources.
 * @throws {Error} if the store cannot be opened or a scope has no gate.
 */
export const buildApp = async (config: Config, options: AppOptions = {}): Promise<FastifyInstance> => {
  const { clock = Date.now, features = FEATURES } = options
  requireGateFiles()
  checkFeatures(features)
  const logger = createLogger(config, options.logStream)
  const storage = options.storage ?? (await openStorage(config.storage, config.databaseConnections, features))
  const app = Fastify(serverOptions(config, logger))
  let services: CoreServices
  try {
    services = createServices(config, {
      storage,
      features,
      clock,
      logger,
      hasher: options.hasher,
      rateLimits: options.rateLimits,
      cleanUpPace: options.cleanUpPace,
    })
  } catch (error) {
    await storage.close()
    throw error
  }
  app.log = logger
  app.decorate('config', config)
  app.decorate('services', services as Services)
  const routeTable: DeclaredRoute[] = []
  app.decorate('routeTable', routeTable)
  app.addHook('onRoute', route => {
    routeTable.push({ url: route.url, methods: [route.method].flat(), options: route })
  })
  app.addHook('onClose', () => services.close())

  app.register(autoload, { dir: join(ROOT, 'plugins'), dirNameRoutePrefix: false })
  for (const [name, scope] of Object.entries(SCOPES)) registerScope(app, name, scope)
  return app
}
