const { readFileSync } = require('node:fs')
const { join } = require('node:path')

/** Imports point one way (ARCHITECTURE.md): routes and plugins → src; inside src, one rule for each folder that others build on. */
const rule = (name, from, to, comment) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from },
  to: { path: to },
})

/** Folders with a stored part in the list of features, which the core uses too. */
const OF_CORE = ['accounts', 'consumers', 'email-confirmation', 'jobs']

/** The folders of features, which only the lists of features import. */
const folders = ['src/built-in-features.ts', 'src/features.ts']
  .flatMap(list => [...readFileSync(join(__dirname, list), 'utf8').matchAll(/ from '\.\/([\w-]+)\//g)])
  .map(([, folder]) => folder)
  .filter(folder => !OF_CORE.includes(folder))
const FEATURES = `(${[...new Set(folders)].join('|')})`

module.exports = {
  forbidden: [
    {
      name: 'no-cycle',
      severity: 'error',
      comment:
        'files that import each other, also by types or import(), are one concept, or what both need is a third file',
      from: {},
      to: { circular: true },
    },
    rule(
      'src-imports',
      '^src/(?![^/]+/routes/|route-types\\.ts$)',
      '^(plugins|routes|test|bench|scripts)',
      'src imports neither plugins, routes nor tooling; src/route-types.ts exports the types of plugins to hosts',
    ),
    rule(
      'plugins-import-no-routes',
      '^plugins',
      '^(routes|test|bench|scripts)',
      'plugins import neither routes nor tooling',
    ),
    rule(
      'routes-import-no-plugins',
      '^(routes|src/[^/]+/routes)/',
      '^(plugins|test|bench|scripts)',
      'routes import neither plugins nor tooling: decorators are typed by augmentation',
    ),
    rule(
      'routes-src-imports',
      '^(routes|src/[^/]+/routes)/',
      '^src/(storage|mail|http/|app|server|services|config|logging)',
      'routes call use cases through app.services: they import no storage, mail, HTTP server, configuration or set-up',
    ),
    rule(
      'plugins-import-no-storage',
      '^plugins',
      '^src/storage',
      'plugins reach the store through app.services',
    ),
    rule(
      'users-imports',
      '^src/users',
      '^src/(?!users/|audit-log/|storage/stores\\.ts$|(ascii|ids|errors|pagination|maybe-promise)\\.ts$)',
      'src/users imports only src/audit-log, types of stores, and the files ascii, ids, errors, pagination and maybe-promise',
    ),
    rule(
      'auth-imports',
      '^src/auth',
      '^src/(?!statistics/|auth/|users/|audit-log/|concurrency/|storage/stores\\.ts$|(ids|errors|files|maybe-promise)\\.ts$)',
      'src/auth imports only src/users, src/audit-log, src/concurrency, src/statistics, types of stores and the files ids, errors, files and maybe-promise',
    ),
    rule(
      'audit-log-imports',
      '^src/audit-log',
      '^src/(?!audit-log/|users/|concurrency/|storage/stores\\.ts$|(ids|errors|pagination|maybe-promise)\\.ts$)',
      'src/audit-log imports only src/users, src/concurrency, types of stores, and the files ids, errors, pagination and maybe-promise',
    ),
    rule(
      'passwords-imports',
      '^src/passwords',
      '^src/(?!statistics/|passwords/|users/|concurrency/|http-client/|(ids|errors)\\.ts$)',
      'src/passwords imports only src/users, src/concurrency, src/statistics, src/http-client, src/ids.ts and src/errors.ts',
    ),
    rule(
      'http-client-imports',
      '^src/http-client',
      '^src/(?!http-client/|concurrency/|config/readers\\.ts$)',
      'src/http-client imports only src/concurrency and src/config/readers.ts: every service may send requests with it',
    ),
    rule(
      'rate-limits-imports',
      '^src/rate-limits',
      '^src/(?!rate-limits/|users/|audit-log/|concurrency/|storage/stores\\.ts$|(ids|errors)\\.ts$)',
      'src/rate-limits imports only src/users, src/audit-log, src/concurrency, types of stores, src/ids.ts and src/errors.ts',
    ),
    rule(
      'accounts-imports',
      '^src/accounts',
      '^src/(?!statistics/|accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|mail/kinds\\.ts$|storage/stores\\.ts$|(ids|errors|maybe-promise)\\.ts$)',
      'src/accounts imports the domain, src/mail/kinds.ts and types of stores: no storage, no HTTP',
    ),
    {
      name: 'stores-are-types',
      severity: 'error',
      comment: 'the domain imports types of its stores from src/storage/stores.ts, and nothing that runs',
      from: { path: '^src/(users|auth|audit-log|rate-limits|accounts)/' },
      to: { path: '^src/storage/', dependencyTypesNot: ['type-only'] },
    },
    rule(
      'concurrency-imports',
      '^src/concurrency',
      '^src/(?!concurrency/|errors\\.ts$)',
      'src/concurrency imports only src/errors.ts',
    ),
    rule(
      'statistics-imports',
      '^src/statistics',
      '^src/(?!statistics/)',
      'src/statistics imports nothing: services of every folder count with it',
    ),
    rule(
      'metrics-imports',
      '^src/(users|audit-log|auth|passwords|rate-limits|accounts|concurrency|storage|mail|validation|config|cli)/',
      '^src/metrics',
      'services count in src/statistics and know nothing of metrics: src/metrics reads their numbers',
    ),
    rule(
      'validation-imports',
      '^src/validation',
      '^src/(?!validation/|accounts/|auth/|passwords/|users/|audit-log/|(ascii|ids|errors)\\.ts$)',
      'src/validation imports the domain only: it serves HTTP and the command line',
    ),
    rule(
      'pages-imports',
      '^src/pages',
      '^src/(?!pages/|errors\\.ts$)|node_modules/',
      'src/pages imports only src/errors.ts: templates know neither HTTP nor services',
    ),
    rule(
      'openapi-imports',
      '^src/openapi',
      '^src/(?!openapi/|validation/|errors\\.ts$)|node_modules/',
      'src/openapi imports only src/validation and src/errors.ts: plugins/openapi.ts brings the routes',
    ),
    rule(
      'storage-imports',
      '^src/storage',
      '^src/(?!statistics/|storage/|accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|config/readers\\.ts$|(ids|errors|files|idle-memory|maybe-promise)\\.ts$)',
      'src/storage imports the domain, src/concurrency, src/statistics and readers of settings: no HTTP, mail, validation or configuration',
    ),
    rule(
      'workers-only-in-server',
      '^(src/(?!workers/|server\\.ts$|metrics/worker-metrics\\.ts$)|plugins|routes)',
      '^src/workers/',
      'only the standalone server starts workers: a host application and the services know nothing of them',
    ),
    rule(
      'opentelemetry-only-in-tracing',
      '^(src/(?!tracing/)|plugins|routes)',
      'node_modules/@opentelemetry/',
      'only src/tracing imports OpenTelemetry',
    ),
    {
      name: 'tracing-on-demand',
      severity: 'error',
      comment: 'src/tracing loads OpenTelemetry: import it with import(), where traces are configured',
      from: { path: '^(src/(?!tracing/)|plugins|routes)' },
      to: { path: '^src/tracing', dependencyTypesNot: ['type-only', 'dynamic-import'] },
    },
    rule(
      'simplewebauthn-only-in-two-modules',
      '^(src/(?!passkeys/(web-authn|public-keys)\\.ts$)|plugins|routes)',
      'node_modules/@simplewebauthn/',
      'only web-authn.ts and public-keys.ts of src/passkeys import @simplewebauthn/server',
    ),
    {
      name: 'web-authn-on-demand',
      severity: 'error',
      comment: 'these modules load @simplewebauthn/server, 27 MB: import them with import()',
      from: { path: '^(src/(?!passkeys/web-authn\\.ts$)|plugins|routes)' },
      to: {
        path: '^src/passkeys/(web-authn|public-keys)\\.ts$',
        dependencyTypesNot: ['type-only', 'dynamic-import'],
      },
    },
    rule(
      'mail-imports',
      '^src/mail/',
      '^src/(?!statistics/|mail/|rate-limits/|users/|(ids|errors)\\.ts$)',
      'src/mail imports only src/rate-limits, src/users, src/statistics, src/ids.ts and src/errors.ts: use cases declare the kinds of mail',
    ),
    {
      name: 'mail-texts-in-set-up',
      severity: 'error',
      comment:
        "mail texts are loaded by the set-up of the service only: neither the store nor SQLite's writer thread needs them; policies of tokens are in src/accounts/email-token.ts",
      from: { path: '^(src/(?!(services|gatehouse|check-features)\\.ts$)|plugins|routes)' },
      to: { path: '^src/accounts/mails\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    rule(
      'features-are-folders',
      `^(src/(?!(built-in-)?features\\.ts$|${FEATURES}/)|plugins|routes)`,
      `^src/${FEATURES}/`,
      'only src/built-in-features.ts, or src/features.ts, imports the folder of a feature',
    ),
    rule(
      'email-confirmation-in-set-up',
      '^(src/(?!(services|built-in-features)\\.ts$|email-confirmation/)|plugins|routes/(?!public/account/verify-email/))',
      '^src/email-confirmation/',
      'only the set-up creates what is in src/email-confirmation, and its route uses it',
    ),
    rule(
      'email-confirmation-imports',
      '^src/email-confirmation',
      '^src/(?!email-confirmation/|accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|storage/(stores|stored-feature)\\.ts$|storage/operations/|(ids|errors)\\.ts$)',
      'src/email-confirmation imports the domain, and what operations of a stored feature need',
    ),
    {
      name: 'features-know-no-other',
      severity: 'error',
      comment: 'a feature does not import another one',
      from: { path: `^src/${FEATURES}/` },
      to: { path: `^src/${FEATURES}/`, pathNot: '^src/$1/' },
    },
    rule(
      'built-in-features-join',
      '^(src/(?!built-in-features\\.ts$)|plugins|routes|bench|scripts)',
      '^src/features\\.ts$',
      'src/built-in-features.ts joins the features of src/features.ts with those that every service has',
    ),
    rule(
      'no-import-of-commands',
      '^(src/(?!cli/|cli\\.ts$|[^/]+/commands\\.ts$)|plugins|routes|bench|scripts)',
      '^src/cli/',
      'only src/cli.ts, tests, and the commands of features import src/cli',
    ),
    rule(
      'cli-imports',
      '^src/cli',
      '^src/(http/|app|server|services|workers|logging)|node_modules/(fastify|@fastify|pino)/',
      'src/cli imports no HTTP, app set-up or log: commands run use cases on a store',
    ),
    rule(
      'fastify-only-in-http',
      '^src/(users|audit-log|auth|passwords|rate-limits|accounts|concurrency|storage|mail|validation)/',
      'node_modules/(fastify|@fastify|pino)/',
      'only HTTP, logging and set-up import fastify and pino',
    ),
    rule(
      'drivers-only-in-storage',
      '^(src/(?!storage)|plugins|routes)',
      'node_modules/(better-sqlite3|kysely|pg)/',
      'only src/storage imports database drivers and Kysely',
    ),
    rule(
      'nodemailer-only-in-mail',
      '^(src/(?!mail/)|plugins|routes)',
      'node_modules/nodemailer/',
      'only src/mail imports nodemailer',
    ),
    rule(
      'client-imports-nothing',
      '^client/(?!bin\\.ts$)',
      '^(?!client/)',
      'the client runs in browsers: it imports neither the service nor packages',
    ),
    rule(
      'no-import-of-client',
      '^(src|plugins|routes)',
      '^client/',
      'the service does not import its client',
    ),
    {
      name: 'no-dev-dependencies',
      severity: 'error',
      comment: 'npm ci --omit=dev must install everything that production code imports',
      from: { path: '^(src|plugins|routes|client)' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.cjs', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
}
