/**
 * Gatehouse as a Fastify plugin, for other applications: `await app.register(gatehouse, { prefix: '/auth' })`. The plugin adds
 * `app.gatehouse` to the host's instance; everything else is encapsulated below the prefix.
 */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { ServiceError } from '#base/errors'
import { ConfigError } from '#base/settings/readers'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import type { LoggedEvent } from '#core/audit-log/event-feed'
import type { HostConsumer } from '#feature/consumers/consumers'
import type { Feature, HostServices, ServicesOf, SettingNamesOf } from '#feature/declaration'
import { allFeatures, type BuiltInMails, type FeatureSettingName } from '#features/built-in'
import { isolateFromHost } from '#http/encapsulation'
import { type Guard, type Guards, REQUEST_DECORATORS } from '#http/request-authentication'
import { serverLimits } from '#http/server-options'
import { type Config, loadConfig } from '#process/config/config'
import type { Environment } from '#process/config/read-settings'
import type { SettingName } from '#process/config/settings'
import { type AppOptions, addInnerPart, addMetricsServer, addOuterPart, openServices } from './app.ts'
import '#http/validated-data-type'
import type { MailTemplate, MailTemplates } from '#core/mail/kinds'
import type { User } from '#core/users/user'
import { logSerializers } from '#process/logging/logging'
import type { Services } from './services.ts'

type Given = string | number | boolean | undefined

type WithFile<Name extends string> = Name | `${Name}_FILE`

/**
 * Settings by the names of the environment variables: `{ DATABASE_URL: 'sqlite:data/gatehouse.db', PASSWORD_MIN_LENGTH: 12 }`.
 * Those of the host's own features have a type parameter: `const config: GatehouseConfig<[typeof notes]> = { … }`.
 */
export type GatehouseConfig<Features extends readonly Feature[] = []> = {
  readonly [Name in WithFile<SettingName | FeatureSettingName | SettingNamesOf<Features>>]?: Given
}

/** `app.gatehouse`. */
export interface Gatehouse extends Guards {
  /**
   * Requires a user and what guards of features check, declared as in the `config` of a private route: `{ organization: ['admin'] }`.
   * Behind `requireScope` it also accepts API keys.
   * @throws {Error} if no feature has such a guard.
   */
  requireGuards(declared: FastifyContextConfig): Guard
  readonly services: Services & HostServices
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly gatehouse: Gatehouse
  }
}

/**
 * The texts of mails by kind: docs/mail.md lists them, and features add some. If a template throws, the built-in text is sent. What templates
 * of features receive, they declare: `({ scopes }: { scopes: readonly string[] }) => …`.
 */
export type GatehouseMailTemplates = MailTemplates<BuiltInMails> & Readonly<Record<string, MailTemplate>>

export interface MailOptions {
  /** The name of the product in the built-in texts: the setting `PRODUCT_NAME`. */
  readonly productName?: string
  /** The sender, `Name <address>`: the setting `MAIL_FROM`. */
  readonly from?: string
  readonly templates?: GatehouseMailTemplates
}

export interface GatehouseOptions {
  /** The path of the service, such as `/auth`. Paths outside of it belong to the host. */
  readonly prefix: string
  /** The settings, by the names of the environment variables; by default the environment of the process. */
  readonly config?: GatehouseConfig
  /** A folder with `public/`, `private/` and `admin/`: an absolute path, a file URL, or relative to the working directory. */
  readonly routes?: string | URL
  /** Further capabilities with their own data: see docs/extending.md. Their declarations come from `gatehouse/feature`. */
  readonly features?: readonly Feature[]
  /**
   * Called for each event of the audit log, in order and after the commit, also for the events of other instances and of the
   * command line. What it throws is logged. With a name it is a durable consumer: it gets each event at least once, also after a crash,
   * in one process of all, and events for which it throws are repeated.
   */
  readonly onEvent?: ((event: LoggedEvent) => unknown) | HostConsumer
  readonly mails?: MailOptions
}

/** @returns the whole path of the service. */
const checkPrefix = (host: FastifyInstance, prefix: unknown): string => {
  if (typeof prefix !== 'string' || !/^\/[^:*?#\s]*[^:*?#\s/]$/.test(prefix) || /[:*]/.test(host.prefix))
    throw new Error(
      `The prefix must be a path such as /auth, without parameters, not ${JSON.stringify(prefix)}`,
    )
  return host.prefix + prefix
}

/** @throws {Error} if another plugin has taken a name of the service. */
const checkDecorators = (host: FastifyInstance, features: readonly Feature[]): void => {
  if (host.hasDecorator('gatehouse'))
    throw new Error('Gatehouse is already registered here: register each service in a scope of its own')
  const guards = features.flatMap(({ guards = {} }) => Object.keys(guards))
  const taken = [...REQUEST_DECORATORS, ...guards].find(name => host.hasRequestDecorator(name))
  if (taken !== undefined)
    throw new Error(
      `request.${taken} belongs to another plugin: register it and Gatehouse in scopes of their own`,
    )
}

/** For hosts in JavaScript. */
const checkHostConsumer = ({ name, types, handle }: HostConsumer): void => {
  if (typeof handle !== 'function' || typeof name !== 'string' || !/^[a-z][a-zA-Z0-9]*$/.test(name))
    throw new Error('onEvent must be a function, or { name, handle, types? } with a name such as searchIndex')
  if (types !== undefined && !Array.isArray(types)) throw new Error('The types of onEvent must be an array')
}

/** For hosts in JavaScript. */
const checkOptions = ({ onEvent, features = [] }: GatehouseOptions): void => {
  if (!Array.isArray(features)) throw new Error('features must be an array')
  if (onEvent !== undefined && typeof onEvent !== 'function') checkHostConsumer(onEvent)
}

/** @param features every feature of the service. */
const checkTemplates = ({ templates = {} }: MailOptions, features: readonly Feature[]): void => {
  const kinds = [ACCOUNT_MAILS, ...features.map(({ mails }) => mails ?? {})].flatMap(kinds =>
    Object.keys(kinds),
  )
  const unknown = Object.keys(templates).find(name => !kinds.includes(name))
  if (unknown !== undefined) throw new Error(`There is no mail ${unknown}: the mails are ${kinds.join(', ')}`)
}

const folderOf = (routes: string | URL | undefined): string | undefined => {
  if (routes === undefined) return undefined
  return routes instanceof URL || routes.startsWith('file:') ? fileURLToPath(routes) : resolve(routes)
}

const mailSettings = ({ productName, from }: MailOptions): Environment => ({
  ...(productName !== undefined && { PRODUCT_NAME: productName }),
  ...(from !== undefined && { MAIL_FROM: from }),
})

/** Spans of operations, in the traces of the host: the host starts the SDK and records requests. */
const hostTracing = async ({ tracesUrl }: Config): Promise<NonNullable<AppOptions['tracing']> | null> => {
  if (tracesUrl === null) return null
  const { operationSpans } = await import('#process/tracing/operation-spans')
  return { recorderOf: operationSpans }
}

const asText = (name: string, value: unknown): string | undefined => {
  if (value === undefined || value === null) return undefined
  if (!['string', 'number', 'boolean'].includes(typeof value))
    throw new ConfigError([`${name} must be text, a number or a boolean`])
  return String(value)
}

/**
 * @returns the settings as text. `NODE_ENV` is the process's unless it is given, so that a host in production gets the checks of
 * production. Without an object, the environment of the process.
 * @throws {ConfigError}
 */
const toEnvironment = (config: GatehouseConfig | undefined): Environment => {
  if (config === undefined) return process.env
  const given = Object.entries(config).map(([name, value]) => [name, asText(name, value)])
  return { NODE_ENV: process.env.NODE_ENV, ...Object.fromEntries(given) }
}

const plugin = async (host: FastifyInstance, options: GatehouseOptions): Promise<void> => {
  const path = checkPrefix(host, options.prefix)
  checkOptions(options)
  const { features, onEvent, mails = {} } = options
  const environment = { ...toEnvironment(options.config), ...mailSettings(mails) }
  const all = allFeatures(features)
  const config = loadConfig(environment, all, path)
  checkDecorators(host, all)
  checkTemplates(mails, all)
  const logger = host.log
  const tracing = await hostTracing(config)
  const services = await openServices(config, logger, {
    tracing,
    ...(features !== undefined && { features }),
    onEvent,
    mailTemplates: mails.templates,
  })
  let inner: FastifyInstance = host
  const authentication = addOuterPart(host, config, services, () => inner)
  addMetricsServer(host, config, services)
  for (const warning of config.warnings) logger.warn(warning)
  host.register(
    async function service(scope) {
      inner = scope
      await isolateFromHost(scope, logSerializers)
      addInnerPart(scope, { config, services, authentication, features, routes: folderOf(options.routes) })
    },
    { prefix: options.prefix },
  )
}

/**
 * The limits, timeouts and trusted proxies of the standalone service, for a host's `Fastify(serverOptions())`.
 * @throws {ConfigError}
 */
export const serverOptions = (config?: GatehouseConfig): ReturnType<typeof serverLimits> =>
  serverLimits(loadConfig(toEnvironment(config), allFeatures()))

export default fp(plugin, { name: 'gatehouse', fastify: '5.x' })

export { ConfigError, type Guard, type LoggedEvent, ServiceError, type Services, type ServicesOf, type User }
