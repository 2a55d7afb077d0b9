/** Imports point one way (ARCHITECTURE.md, "Folders"): a folder of `src/` imports from itself and from the folders before it. */

/** From the lowest to the highest. The files directly in `src/` are above all of them. */
const LAYERS = ['base', 'storage', 'core', 'http', 'feature', 'features', 'process']

const rule = (name, from, to, comment) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from },
  to: { path: to },
})

const upwardRules = LAYERS.map((layer, index) => {
  const above = LAYERS.slice(index + 1)
  const folders = above.length === 0 ? '' : `(${above.join('|')})/|`
  return {
    name: `${layer}-imports-downwards`,
    severity: 'error',
    comment: `src/${layer} imports from ${LAYERS.slice(0, index + 1).join(', ')} only`,
    from: { path: `^src/${layer}/` },
    to: { path: `^src/(${folders}[^/]+$)` },
  }
})

module.exports = {
  forbidden: [
    ...upwardRules,
    {
      name: 'no-cycle',
      severity: 'error',
      comment:
        'files that import each other, also by types or import(), are one concept or need a third file',
      from: {},
      to: { circular: true },
    },
    rule(
      'src-imports',
      '^src/(?!features/[^/]+/routes/|route-types\\.ts$)',
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
      '^(routes|src/features/[^/]+/routes)/',
      '^(plugins|test|bench|scripts)',
      'routes import neither plugins nor tooling: decorators are typed by augmentation',
    ),
    rule(
      'routes-import-use-cases',
      '^(routes|src/features/[^/]+/routes)/',
      '^src/(storage|core/(mail|store)/|core/[^/]+/(stored|sqlite|postgres)-|http/(?!validation/|pages/|disconnect-signal)|process/(?!status-report)|app|server|services)',
      'routes call use cases through app.services: they import no storage, mail, HTTP server, configuration or set-up',
    ),
    rule(
      'plugins-import-no-storage',
      '^plugins',
      '^src/(storage|core/store)/',
      'plugins reach the store through app.services',
    ),
    {
      name: 'features-know-no-other',
      severity: 'error',
      comment: 'a feature imports no other feature',
      from: { path: '^src/features/([^/]+)/' },
      to: { path: '^src/features/[^/]+/', pathNot: '^src/features/$1/' },
    },
    rule(
      'features-are-folders',
      '^(src/(?!features/)|plugins|routes)',
      '^src/features/[^/]+/',
      'only the list of features imports the folder of a feature',
    ),
    rule(
      'workers-only-in-server',
      '^(src/(?!process/workers/|server\\.ts$|process/metrics/worker-metrics\\.ts$)|plugins|routes)',
      '^src/process/workers/',
      'only the standalone server starts workers: a host application and the services know nothing of them',
    ),
    rule(
      'commands-import-no-http',
      '^src/process/cli/',
      '^src/(http/(?!validation/)|app|server|process/(workers|logging))|node_modules/(fastify|@fastify|pino)/',
      'commands run use cases on a store, without HTTP, the set-up of the app, or a log',
    ),
    rule(
      'fastify-only-in-http',
      '^src/(base|storage|core|http/validation)/',
      'node_modules/(fastify|@fastify|pino)/',
      'only HTTP, logging and set-up import fastify and pino',
    ),
    rule(
      'drivers-only-in-storage',
      '^(src/(?!storage)|plugins|routes)',
      'node_modules/(better-sqlite3|pg)/',
      'only src/storage imports database drivers',
    ),
    rule(
      'kysely-only-in-statements',
      '^(src/(?!storage/|core/store/|core/[^/]+/(stored-|sqlite-|postgres-|[a-z]+-queries|key-rows))|plugins|routes)',
      'node_modules/kysely/',
      'only src/storage and the files of the core with its statements import Kysely',
    ),
    rule(
      'nodemailer-only-in-mail',
      '^(src/(?!core/mail/)|plugins|routes)',
      'node_modules/nodemailer/',
      'only src/core/mail imports nodemailer',
    ),
    rule(
      'opentelemetry-only-in-tracing',
      '^(src/(?!process/tracing/)|plugins|routes)',
      'node_modules/@opentelemetry/',
      'only src/process/tracing imports OpenTelemetry',
    ),
    {
      name: 'tracing-on-demand',
      severity: 'error',
      comment:
        'src/process/tracing loads OpenTelemetry: import it with import(), where traces are configured',
      from: { path: '^(src/(?!process/tracing/)|plugins|routes)' },
      to: { path: '^src/process/tracing', dependencyTypesNot: ['type-only', 'dynamic-import'] },
    },
    rule(
      'simplewebauthn-only-in-two-modules',
      '^(src/(?!features/passkeys/(web-authn|public-keys)\\.ts$)|plugins|routes)',
      'node_modules/@simplewebauthn/',
      'only web-authn.ts and public-keys.ts of src/features/passkeys import @simplewebauthn/server',
    ),
    {
      name: 'web-authn-on-demand',
      severity: 'error',
      comment: 'these modules load @simplewebauthn/server, 27 MB: import them with import()',
      from: { path: '^(src/(?!features/passkeys/web-authn\\.ts$)|plugins|routes)' },
      to: {
        path: '^src/features/passkeys/(web-authn|public-keys)\\.ts$',
        dependencyTypesNot: ['type-only', 'dynamic-import'],
      },
    },
    {
      name: 'mail-texts-in-set-up',
      severity: 'error',
      comment: "neither the store nor SQLite's writer thread loads texts of mails",
      from: { path: '^(src/(?!(services|gatehouse|feature/texts)\\.ts$)|plugins|routes)' },
      to: { path: '^src/core/accounts/mails\\.ts$', dependencyTypesNot: ['type-only'] },
    },
    rule(
      'client-imports-nothing',
      '^client/(?!bin\\.ts$)',
      '^(?!client/)',
      'the client runs in browsers: it imports neither the service nor packages',
    ),
    {
      name: 'verifier-imports-node-alone',
      severity: 'error',
      comment: 'the verifier runs in other services: it imports neither the service nor packages',
      from: { path: '^verifier/' },
      to: { pathNot: '^verifier/', dependencyTypesNot: ['core'] },
    },
    rule(
      'no-import-of-client',
      '^(src|plugins|routes)',
      '^(client|verifier)/',
      'the service imports neither its client nor its verifier',
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
