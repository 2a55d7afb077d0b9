/** Assembles the service on a Fastify instance: services, plugins, and routes by scope. For the server, hosts and every test. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import autoload from '@fastify/autoload'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyContextConfig,
  type FastifyInstance,
  type RouteOptions,
} from 'fastify'
import type { DestinationStream } from 'pino'
import { openStorage } from '#core/store/open'
import type { Storage } from '#core/store/store'
import { withRecorder } from '#core/store/with-recorder'
import type { Feature, HostServices } from '#feature/declaration'
import { allFeatures } from '#features/built-in'
import { decorateRequests, RequestAuthentication } from '#http/request-authentication'
import { createRequestIds } from '#http/request-ids'
import { requireUniqueRoutes } from '#http/route-declarations'
import { decorateWithGuards, requireGuards } from '#http/route-guards'
import { serverOptions } from '#http/server-options'
import { setUpServer } from '#http/server-set-up'
import type { Config } from '#process/config/config'
import { createLogger } from '#process/logging/logging'
import { type MetricsServer, openMetricsServer } from '#process/metrics/metrics-server'
import type { Tracing } from '#process/tracing/tracing'
import { checkMailsAndMetrics, createServices, type ServiceOptions, type Services } from './services.ts'

export type Gate = 'user' | 'adminKey'

declare module 'fastify' {
  interface FastifyInstance {
    readonly config: Config
    readonly services: Services & HostServices
    readonly requestAuthentication: RequestAuthentication
    /** Every declared route; complete once the app is ready. */
    readonly routeTable: readonly DeclaredRoute[]
  }
  interface FastifyContextConfig {
    /** The gate that guards the route; set by the scope's autohooks, absent on public routes. */
    gate?: Gate
    /** The name of the feature that has the route in its folder. */
    feature?: string
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

export interface AppOptions extends ServiceOptions {
  /** Further ones than those of `src/features/own.ts`. */
  readonly features?: readonly Feature[]
  readonly storage?: Storage
  /** Records operations of the store, and requests, unless a host application does that itself. */
  readonly tracing?: (Pick<Tracing, 'recorderOf'> & Partial<Pick<Tracing, 'addRequestSpans'>>) | null
  /** The destination of log lines, by default standard output. */
  readonly logStream?: DestinationStream
}

const ROOT = join(import.meta.dirname, '..')

/** `.ts` in a checkout, `.js` in a built package. */
const EXTENSION = extname(import.meta.filename)

const BUILT_IN = join(ROOT, 'routes')

const ROUTE_FILE = /[/\\]routes\.[cm]?[jt]s$/

const gateFile = (scope: string): string => join(BUILT_IN, scope, `autohooks${EXTENSION}`)

/** Autoload ignores a missing or misnamed gate file, which would leave the routes of the scope open to everybody. */
const requireGateFiles = (): void => {
  for (const [name, { gate }] of Object.entries(SCOPES))
    if (gate !== undefined && !existsSync(gateFile(name)))
      throw new Error(`routes/${name}/autohooks${EXTENSION} is missing: it is the gate of its scope`)
}

/**
 * A folder of further routes, with the same subfolders as `routes/`.
 * @returns its scopes.
 * @throws {Error} if it does not exist, or has routes without a gate.
 */
const scopesIn = (folder: string): string[] => {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new Error(`The folder of routes does not exist: ${folder}`)
  const names = Object.keys(SCOPES)
  const entries = readdirSync(folder, { withFileTypes: true })
  const unknown = entries.find(entry =>
    entry.isDirectory() ? !names.includes(entry.name) : ROUTE_FILE.test(`/${entry.name}`),
  )
  if (unknown !== undefined)
    throw new Error(`${join(folder, unknown.name)} has no gate: move it into ${names.join(', ')}`)
  return entries.filter(entry => entry.isDirectory()).map(({ name }) => name)
}

interface RouteFolder {
  /** An absolute path. */
  readonly folder: string
  /** The name of the feature that it belongs to. */
  readonly feature?: string
}

const ownerOf = ({ folder, feature }: RouteFolder): string => {
  if (feature !== undefined) return `the feature ${feature}`
  return folder === BUILT_IN ? 'the core' : `the folder ${folder}`
}

/** @param folder the built-in `routes/`, whose gates are autoloaded, or another folder, whose routes get the same gates. */
const registerScope = (app: FastifyInstance, routeFolder: RouteFolder, name: string): void => {
  const { folder, feature } = routeFolder
  const { gate, prefix = '' } = SCOPES[name] ?? {}
  const routes: RouteOptions[] = []
  // Detects a gate file that sets no gate, before the first request, and before plugins check what routes declare for their gate.
  app.addHook('onReady', async () => {
    const open = routes.find(({ config }) => config?.gate !== gate)
    if (open !== undefined)
      throw new Error(`${open.url} in routes/${name} is not behind the gate of its scope`)
  })
  app.register(async function routesOfScope(scoped) {
    scoped.decorate('routeOwner', ownerOf(routeFolder))
    scoped.addHook('onRoute', route => {
      if (feature !== undefined) route.config = { ...route.config, feature }
      routes.push(route)
    })
    if (gate !== undefined && folder !== BUILT_IN) {
      const { default: addGate } = await import(pathToFileURL(gateFile(name)).href)
      await addGate(scoped)
    }
    await scoped.register(autoload, {
      dir: join(folder, name),
      autoHooks: true,
      cascadeHooks: true,
      // The folder `_id` becomes `/:id`.
      routeParams: true,
      matchFilter: ROUTE_FILE,
      options: { prefix },
    })
  })
}

const routeFoldersOf = (features: readonly Feature[]): RouteFolder[] =>
  features.flatMap(({ name, routes }) =>
    routes === undefined ? [] : [{ folder: fileURLToPath(routes), feature: name }],
  )

/**
 * Opens the store and creates the services.
 * @throws {Error} if the store cannot be opened.
 */
export const openServices = async (
  config: Config,
  logger: FastifyBaseLogger,
  options: AppOptions = {},
): Promise<Services> => {
  const features = allFeatures(options.features)
  checkMailsAndMetrics(features, config)
  for (const { folder } of routeFoldersOf(features)) scopesIn(folder)
  const replica = config.replica && { ...config.replica, log: logger }
  const opened =
    options.storage ??
    (await openStorage(config.storage, config.databaseConnections, features, {
      replica,
      waits: config.waitsForRevocations,
    }))
  const recorder = options.tracing?.recorderOf(config.storage.engine)
  const storage = recorder === undefined ? opened : withRecorder(opened, recorder)
  try {
    return (await createServices(config, { ...options, storage, features, logger })) as Services
  } catch (error) {
    await storage.close()
    throw error
  }
}

/**
 * Adds the outer part to an instance: `app.gatehouse`, the requests' decorators, and the end of the services with the app.
 * @param scope returns the instance of the inner part, once it exists.
 */
export const addOuterPart = (
  app: FastifyInstance,
  config: Config,
  services: Services,
  scope: () => FastifyInstance,
): RequestAuthentication => {
  const { authenticator, adminAuthenticator, clientAuthenticator, resourceMetadata } = services
  const { userScopes, adminScopes } = services
  const authentication = new RequestAuthentication({
    authenticator,
    adminAuthenticator,
    clientAuthenticator,
    resourceMetadata,
    userScopes,
    adminScopes,
    allowedOrigins: config.allowedOrigins,
    proofs: services.proofs,
    publicUrl: config.publicUrl,
    clock: services.clock,
    parseCookie: header => scope().parseCookie(header),
  })
  const { requireUser, requireScope, requireRoles } = authentication
  const { requireAdminKey, requireAdminScope, requireClient } = authentication
  const guards = {
    requireUser,
    requireScope,
    requireRoles,
    requireAdminKey,
    requireAdminScope,
    requireClient,
  }
  app.decorate('gatehouse', {
    ...guards,
    requireGuards: (declared: FastifyContextConfig) =>
      requireGuards(services.routeGuards, requireUser, declared),
    services,
  })
  decorateRequests(app)
  decorateWithGuards(app, services.routeGuards)
  app.addHook('onReady', async () => {
    services.eventFeed?.start()
    await services.consumers.start()
  })
  app.addHook('onClose', () => services.close())
  return authentication
}

/**
 * Serves the metrics at `METRICS_PORT`, if it is set, from the time when the app is ready until its last request has ended.
 * @throws {ListenError} when the app becomes ready, if the address cannot be used.
 */
export const addMetricsServer = (app: FastifyInstance, { metrics }: Config, services: Services): void => {
  let server: MetricsServer | null = null
  app.addHook('onReady', async () => {
    server = await openMetricsServer(metrics, () => services.metrics.text(), app.log)
  })
  app.addHook('onClose', async () => server?.close())
}

export interface InnerOptions {
  readonly config: Config
  readonly services: Services
  readonly authentication: RequestAuthentication
  /** Added by a host, see `allFeatures`. */
  readonly features?: readonly Feature[] | undefined
  /** The absolute path of a host's folder of routes. */
  readonly routes?: string | undefined
}

/**
 * Adds the inner part to an instance: plugins and routes.
 * @throws {Error} if a scope has no gate, or the folder of routes is not one.
 */
export const addInnerPart = (
  app: FastifyInstance,
  { config, services, authentication, features, routes }: InnerOptions,
): void => {
  requireGateFiles()
  app.decorate('config', config)
  app.decorate('services', services)
  app.decorate('requestAuthentication', authentication)
  const routeTable: DeclaredRoute[] = []
  app.decorate('routeTable', routeTable)
  app.decorate('routeOwner', 'the core')
  requireUniqueRoutes(app)
  app.addHook('onRoute', route => {
    routeTable.push({ url: route.url, methods: [route.method].flat(), options: route })
  })

  app.register(autoload, { dir: join(ROOT, 'plugins'), dirNameRoutePrefix: false })
  for (const name of Object.keys(SCOPES)) registerScope(app, { folder: BUILT_IN }, name)
  const ofHost = routes === undefined ? [] : [{ folder: routes }]
  for (const each of [...routeFoldersOf(allFeatures(features)), ...ofHost])
    for (const name of scopesIn(each.folder)) registerScope(app, each, name)
}

/**
 * Builds the standalone service, ready to `listen` or `inject`. `app.close()` flushes pending writes and releases all resources.
 * @throws {Error} if the store cannot be opened, a scope has no gate, or a plugin or route cannot be added.
 */
export const buildApp = async (config: Config, options: AppOptions = {}): Promise<FastifyInstance> => {
  requireGateFiles()
  const logger = createLogger(config, options.logStream)
  const services = await openServices(config, logger, options)
  const requestIds = createRequestIds(config.trustedProxies)
  const app = Fastify(serverOptions(config, logger, requestIds))
  app.log = logger
  setUpServer(app.server, logger, requestIds)
  options.tracing?.addRequestSpans?.(app)
  const authentication = addOuterPart(app, config, services, () => app)
  if (options.workerChannel === undefined) addMetricsServer(app, config, services)
  addInnerPart(app, { config, services, authentication, features: options.features })
  try {
    // Fulfilled once the plugins and routes are added.
    return await app
  } catch (error) {
    await app.close()
    throw error
  }
}
