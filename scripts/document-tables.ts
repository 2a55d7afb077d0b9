/**
 * Parts of the documents that follow from declarations in the code. `npm run documents` writes docs/errors.tsv, and each table or list
 * between `<!-- table: name -->` and `<!-- end -->`; test/documents/documents.test.ts fails while one is not current.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command } from 'commander'
import type { FastifyInstance } from 'fastify'
import { type DeclaredError, ERRORS } from '#base/errors'
import type { Setting } from '#base/settings/readers'
import type { Metric } from '#base/statistics/metric'
import { RATE_LIMITS, WRITE_LIMIT } from '#core/rate-limits/limits'
import {
  adminScopesOf,
  eventSchemasOf,
  metricsOf,
  rateLimitsOf,
  settingsOf,
  userScopesOf,
} from '#feature/assembly'
import type { Feature } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { coreCommands } from '#process/cli/commands'
import { SETTINGS } from '#process/config/settings'
import { METRICS } from '#process/metrics/declarations'
import { withEveryRoute } from './openapi-document.ts'

const PROJECT = join(import.meta.dirname, '..')

/** Features of a fork are in documents of the fork. */
const FEATURES: readonly Feature[] = BUILT_IN_FEATURES
const FEATURE_NAMES = new Set<string | undefined>([undefined, ...FEATURES.map(({ name }) => name)])

const code = (text: string): string => `\`${text}\``

/** Without white space around cells: nobody edits it. */
const tableOf = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows]
    .map(cells => `|${cells.map(cell => cell.replaceAll('|', '\\|')).join('|')}|`)
    .join('\n')

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

type Content = Readonly<Record<string, { readonly schema: Schema }>>

interface Schema {
  readonly $ref?: string
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, unknown>>
  readonly required?: readonly string[]
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

type Gate = 'public' | 'user' | 'adminKey'

interface DocumentedRoute {
  readonly method: string
  readonly url: string
  readonly gate: Gate
  /** What a key needs, and whether a session needs a recent proof of identity. */
  readonly conditions: readonly string[]
  readonly rateLimit: string | undefined
  readonly hasWriteLimit: boolean
  readonly operation: Operation
}

const METHODS = ['GET', 'POST', 'PUT', 'DELETE']

/** Routes of the API by URL: not hosted pages, and not the documentation. */
const routesOf = ({ routeTable }: FastifyInstance, { paths }: OpenApi): DocumentedRoute[] =>
  routeTable
    .flatMap(({ methods, url, options: { config = {}, schema } }) =>
      methods.flatMap(method => {
        const operation = paths[url.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
        const isDocumented = METHODS.includes(method) && !schema?.hide && FEATURE_NAMES.has(config.feature)
        if (operation === undefined || !isDocumented) return []
        const scopes = new Set([config.scope, ...Object.values(config.fieldScopes ?? {})])
        const conditions = [
          ...[...scopes].filter(scope => scope !== undefined).map(code),
          ...(config.reauthenticate ? ['[re-auth](#re-authentication)'] : []),
        ]
        const { rateLimit, writeLimit } = config
        const gate: Gate = config.gate ?? 'public'
        const hasWriteLimit = gate === 'user' && method !== 'GET' && writeLimit !== false
        return [{ method, url, gate, conditions, rateLimit, hasWriteLimit, operation }]
      }),
    )
    .toSorted(
      (one, other) =>
        one.url.localeCompare(other.url, 'en') || METHODS.indexOf(one.method) - METHODS.indexOf(other.method),
    )

const titleOf = ({ method, url }: DocumentedRoute): string => code(`${method} ${url}`)

const nameOf = (schema: Schema): string =>
  schema.anyOf?.map(nameOf).join(' or ') ?? schema.$ref?.replace(/.*\//, '') ?? ''

/** Statuses that every route can have, and that the page describes once. */
const COMMON = new Set(['400', '401', '403', '408', '413', '415', '429', '431', '500', '503'])

const inputOf = ({ parameters = [], requestBody }: Operation, { components }: OpenApi): string => {
  const query = parameters.filter(parameter => parameter.in === 'query')
  const [{ schema = {} } = {}] = Object.values(requestBody?.content ?? {})
  const { properties = {}, required = [] } = components.schemas[nameOf(schema)] ?? {}
  const body = Object.keys(properties).map(name => (required.includes(name) ? name : `${name}?`))
  const isLines = requestBody !== undefined && 'application/x-ndjson' in requestBody.content
  if (isLines) return `lines of ${nameOf(schema)}`
  return [
    ...(body.length > 0 ? [code(`{${body.join(', ')}}`)] : []),
    ...(query.length > 0 ? [code(`?${query.map(({ name }) => name).join('&')}`)] : []),
  ].join(' ')
}

const responseOf = ({ url, operation: { responses } }: DocumentedRoute): string =>
  Object.entries(responses)
    .filter(([status]) => !COMMON.has(status) && !(status === '404' && url.includes(':')))
    .map(([status, { content = {} }]) => {
      const [[type = '', { schema = {} } = {}] = []] = Object.entries(content)
      if (Number(status) >= 400) return status
      const body = nameOf(schema) || (type === 'text/plain' ? 'text' : '')
      return [status, type === 'application/x-ndjson' ? `lines of ${body}` : body].filter(Boolean).join(' ')
    })
    .join('; ')

const settingRows = (settings: Readonly<Record<string, Setting>>, links: Readonly<Record<string, string>>) =>
  Object.entries(settings).map(([name, setting]) => [
    name in links ? `[${code(name)}](${links[name]})` : code(name),
    setting.default ? code(setting.default) : '',
    textOf(setting.description),
  ])

/** Names of settings and what Markdown would take as HTML become code. */
const textOf = (text: string): string =>
  text
    .replace(/^[A-Z](?=[a-z])/, first => first.toLowerCase())
    .replaceAll(/[^\s,;]*(?:<|:\/\/)[^\s,;]+|\b[A-Z]+(?:_[A-Z]+)+\b/g, code)

/** Where the documents say more about a setting. */
const SETTING_LINKS: Readonly<Record<string, string>> = {
  METRICS_PORT: 'operations.md#metrics',
  WORKERS: '#workers',
  DATABASE_URL: '#database',
  DATABASE_READ_URL: 'operations.md#read-replica',
  DATABASE_CONNECTIONS: 'scaling.md#what-postgresql-handles',
  ADMIN_KEY: 'operations.md#admin-keys',
  JWT_ALGORITHM: '#access-tokens',
  ENCRYPTION_KEY: '#encryption-key',
  NODE_ENV: '#production',
  SERVER_TIMING: '#server-timing',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'operations.md#traces',
  TRUST_PROXY: '#behind-a-proxy',
  COOKIE_DOMAIN: 'verifying.md#forward-authentication',
  FORWARD_AUTH: 'verifying.md#forward-authentication',
  ALLOWED_ORIGINS: 'api.md#cookies-and-csrf',
  CORS_ORIGINS: 'api.md#cors',
  RATE_LIMIT: 'api.md#rate-limits',
  LAST_REQUEST_INTERVAL: 'operations.md#last-requests',
  EVENTS_KEPT: 'operations.md#clean-up',
  BREACHED_PASSWORDS_URL: '#breached-passwords',
  REQUIRE_EMAIL_VERIFICATION: 'api.md#required-e-mail-verification',
  TEXTS: '#languages',
  MAIL_TEMPLATES: 'mail.md#mails-of-your-own',
  USER_METADATA_SCHEMA: '#metadata-schemas',
  APP_METADATA_SCHEMA: '#metadata-schemas',
  MAIL_URL: 'mail.md#transports',
  HSTS: '#production',
  BRAND_COLOR: 'pages.md#brand',
  WEB_URL: 'pages.md#pages-of-your-own',
  PAGES: 'pages.md#pages-of-your-own',
  RETURN_ORIGINS: 'pages.md#back-to-your-application',
  SIGN_UP_PAGE: 'pages.md#brand',
  CACHE_SIZE: '#token-cache',
  DRAIN_DELAY: 'operations.md#stop',
  EMAIL_CODES: 'api.md#e-mail-codes',
  MAGIC_LINKS: 'api.md#magic-links',
  OIDC_PROVIDERS: '#other-providers',
  WEBHOOK_ALLOWED_HOSTS: 'events.md#webhooks',
  ORGANIZATION_ROLES: 'organizations.md#roles',
  OAUTH: 'oauth.md',
  CONSOLE: 'console.md',
}

const routesTable = (app: FastifyInstance, document: OpenApi, gate: Gate): string =>
  tableOf(
    ['route', ...(gate === 'public' ? [] : ['needs']), 'request', 'response'],
    routesOf(app, document)
      .filter(route => route.gate === gate)
      .map(route => [
        titleOf(route),
        ...(gate === 'public' ? [] : [route.conditions.join(', ')]),
        inputOf(route.operation, document),
        responseOf(route),
      ]),
  )

/** Every error as data, which is not part of a page: a message explains itself. */
const errorsFile = (): string => {
  const declared: [string, DeclaredError][] = [
    ...Object.values(ERRORS).map((error): [string, DeclaredError] => ['', error]),
    ...FEATURES.flatMap(({ name, errors = {} }) =>
      Object.values(errors).map((error): [string, DeclaredError] => [name, error]),
    ),
  ]
  const rows = declared
    .toSorted(([, one], [, other]) => one.status - other.status)
    .map(([feature, { status, field, message }]) => [status, field, message, feature])
  return [['status', 'field', 'message', 'feature'], ...rows].map(row => `${row.join('\t')}\n`).join('')
}

const rateLimitsTable = (app: FastifyInstance, document: OpenApi): string => {
  const routes = routesOf(app, document)
  const limits = { ...RATE_LIMITS.perAddress, ...rateLimitsOf(FEATURES) }
  const exempt = routes.filter(
    ({ gate, method, hasWriteLimit }) => gate === 'user' && method !== 'GET' && !hasWriteLimit,
  )
  const namesOf = (listed: readonly DocumentedRoute[]) => listed.map(titleOf).join(', ')
  return tableOf(
    ['limit', 'requests', 'routes'],
    [
      ...Object.entries(limits).map(([name, { points, seconds }]) => [
        code(name),
        `${points} in ${seconds} s`,
        namesOf(routes.filter(({ rateLimit }) => rateLimit === name)) || 'hosted pages',
      ]),
      [
        code(WRITE_LIMIT),
        `${RATE_LIMITS.writesPerUser.points} in ${RATE_LIMITS.writesPerUser.seconds} s`,
        `all of users except GET and ${namesOf(exempt)}`,
      ],
    ],
  )
}

const scopesTable = (scopes: Readonly<Record<string, string>>): string =>
  tableOf(
    ['scope', 'allows'],
    Object.entries(scopes).map(([scope, allows]) => [code(scope), allows]),
  )

/** The table of events by the first part of their names, in the order of the declarations. */
const eventsTable = (): string => {
  const types = Object.entries(eventSchemasOf(FEATURES))
  const groups = Map.groupBy(types, ([type]) => type.split('.')[0]?.replace(/^sessions$/, 'session'))
  return tableOf(
    ['about', 'types (`details`)'],
    [...groups].map(([subject = '', each]) => [
      subject,
      each
        .map(([type, { properties }]) => {
          const names = Object.keys(properties).join(', ')
          return names === '' ? code(type) : `${code(type)} (${names})`
        })
        .join(', '),
    ]),
  )
}

const METRIC_GROUPS = { counter: 'Counters', gauge: 'Gauges', histogram: 'Histograms' }

/** The list of metrics by type, each with its labels in the syntax of a query. */
const metricsList = (): string => {
  const metrics: Readonly<Record<string, Metric>> = { ...METRICS, ...metricsOf(FEATURES) }
  const aggregations = { sum: '', min: ' (minimum)', max: ' (maximum)' }
  return Object.entries(METRIC_GROUPS)
    .map(([group, title]) => {
      const items = Object.entries(metrics)
        .filter(([, { type }]) => type === group)
        .map(([name, { labels, help, workers = 'sum' }]) => {
          const series = labels.length === 0 ? name : `${name}{${labels.join(',')}}`
          return `- ${code(series)}: ${textOf(help)}${aggregations[workers]}`
        })
      return [`**${title}**`, '', ...items].join('\n')
    })
    .join('\n\n')
}

/** What nearly all commands have, which the page says once. */
const COMMON_OPTIONS = new Set(['--database', '--json'])

interface LeafCommand {
  readonly name: string
  readonly command: Command
}

const leavesOf = (command: Command, path: readonly string[] = []): LeafCommand[] =>
  command.commands.length > 0
    ? command.commands.flatMap(each => leavesOf(each, [...path, each.name()]))
    : [{ name: [...path, command.usage().replace('[options]', '').trim()].join(' ').trim(), command }]

const commandsBlock = async (): Promise<string> => {
  const program = new Command()
  coreCommands(program)
  const declared = {
    userScopes: userScopesOf(FEATURES),
    adminScopes: adminScopesOf(FEATURES),
    eventTypes: Object.keys(eventSchemasOf(FEATURES)),
  }
  for (const { commands } of FEATURES) await commands?.(program, async () => undefined, declared)
  const lines = leavesOf(program).flatMap(({ name, command }) => {
    const flags = command.options
      .filter(({ long }) => !COMMON_OPTIONS.has(long ?? ''))
      .map(({ flags }) => flags)
    return [name, `    ${command.description()}`, ...(flags.length > 0 ? [`    ${flags.join('  ')}`] : [])]
  })
  return ['```text', ...lines, '```'].join('\n')
}

const tables = (): Promise<Readonly<Record<string, Readonly<Record<string, string>>>>> =>
  withEveryRoute(async app => {
    const document: OpenApi = (await app.inject('/openapi.json')).json()
    return {
      'docs/api.md': {
        'public routes': routesTable(app, document, 'public'),
        'private routes': routesTable(app, document, 'user'),
        'admin routes': routesTable(app, document, 'adminKey'),
        'scopes of API keys': scopesTable(userScopesOf(FEATURES)),
        'scopes of admin keys': scopesTable(adminScopesOf(FEATURES)),
        'rate limits': rateLimitsTable(app, document),
      },
      'docs/configuration.md': {
        settings: tableOf(
          ['variable', 'default', 'meaning'],
          settingRows({ ...SETTINGS, ...settingsOf(FEATURES) }, SETTING_LINKS),
        ),
      },
      'docs/events.md': { events: eventsTable() },
      'docs/operations.md': { metrics: metricsList(), commands: await commandsBlock() },
    }
  })

const MARKED = /(<!-- table: (.+) -->\n)[\s\S]*?(<!-- end -->)/g

/** @returns by document, its current text. @throws {Error} if a document lacks a table, or has an unknown one. */
export const currentDocuments = async (): Promise<ReadonlyMap<string, string>> => {
  const documents = new Map([['docs/errors.tsv', errorsFile()]])
  for (const [file, byName] of Object.entries(await tables())) {
    const text = readFileSync(join(PROJECT, file), 'utf8')
    const names = [...text.matchAll(MARKED)].map(([, , name = '']) => name)
    if (names.toSorted().join() !== Object.keys(byName).toSorted().join())
      throw new Error(
        `${file} must have the tables ${Object.keys(byName).join(', ')}, not ${names.join(', ')}`,
      )
    documents.set(
      file,
      text.replaceAll(MARKED, (_, begin, name, end) => `${begin}${byName[name]}\n${end}`),
    )
  }
  return documents
}

if (import.meta.main)
  for (const [file, text] of await currentDocuments()) writeFileSync(join(PROJECT, file), text)
