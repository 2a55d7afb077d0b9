/** Imports point one way (ARCHITECTURE.md): routes and plugins → src; inside src, one rule for each folder that others build on. */
const rule = (name, from, to, comment) => ({
  name,
  severity: 'error',
  comment,
  from: { path: from },
  to: { path: to },
})

module.exports = {
  forbidden: [
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
    rule(
      'src-imports',
      '^src',
      '^(plugins|routes|test|bench|scripts)',
      'src imports neither plugins, routes nor tooling',
    ),
    rule(
      'plugins-import-no-routes',
      '^plugins',
      '^(routes|test|bench|scripts)',
      'plugins import neither routes nor tooling',
    ),
    rule(
      'routes-import-no-plugins',
      '^routes',
      '^(plugins|test|bench|scripts)',
      'routes import neither plugins nor tooling: decorators are typed by augmentation',
    ),
    rule(
      'routes-src-imports',
      '^routes',
      '^src/(storage|mail|http|app|server|services|config|logging)',
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
      '^src/(?!users/|audit-log/|(ids|errors|maybe-promise)\\.ts$)',
      'src/users imports only src/audit-log, src/ids.ts, src/errors.ts and src/maybe-promise.ts',
    ),
    rule(
      'auth-imports',
      '^src/auth',
      '^src/(?!statistics/|auth/|users/|audit-log/|concurrency/|(ids|errors|files|maybe-promise)\\.ts$)',
      'src/auth imports only src/users, src/audit-log, src/concurrency, src/statistics and the files ids, errors, files and maybe-promise',
    ),
    rule(
      'audit-log-imports',
      '^src/audit-log',
      '^src/(?!audit-log/|users/|(ids|errors|maybe-promise)\\.ts$)',
      'src/audit-log imports only src/users, src/ids.ts, src/errors.ts and src/maybe-promise.ts',
    ),
    rule(
      'passwords-imports',
      '^src/passwords',
      '^src/(?!statistics/|passwords/|users/|concurrency/|(ids|errors)\\.ts$)',
      'src/passwords imports only src/users, src/concurrency, src/statistics, src/ids.ts and src/errors.ts',
    ),
    rule(
      'rate-limits-imports',
      '^src/rate-limits',
      '^src/(?!rate-limits/|users/|audit-log/|concurrency/|(ids|errors)\\.ts$)',
      'src/rate-limits imports only src/users, src/audit-log, src/concurrency, src/ids.ts and src/errors.ts',
    ),
    rule(
      'accounts-imports',
      '^src/accounts',
      '^src/(?!statistics/|accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|mail/kinds\\.ts$|(ids|errors|maybe-promise)\\.ts$)',
      'src/accounts imports the domain and src/mail/kinds.ts: no storage, no HTTP',
    ),
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
      '^src/(?!validation/|accounts/|auth/|passwords/|users/|audit-log/|(ids|errors)\\.ts$)',
      'src/validation imports the domain only: it serves HTTP and the command line',
    ),
    rule(
      'storage-imports',
      '^src/storage',
      '^src/(?!statistics/|storage/|accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|(ids|errors|files|maybe-promise)\\.ts$)',
      'src/storage imports the domain, src/concurrency and src/statistics: no HTTP, mail, validation or configuration',
    ),
    rule(
      'mail-imports',
      '^src/mail/',
      '^src/(?!statistics/|mail/|rate-limits/|(ids|errors)\\.ts$)',
      'src/mail imports only src/rate-limits, src/statistics, src/ids.ts and src/errors.ts: use cases declare the kinds of mail',
    ),
    rule(
      'built-in-features-join',
      '^(src/(?!built-in-features\\.ts$)|plugins|routes|bench|scripts)',
      '^src/features\\.ts$',
      'src/built-in-features.ts joins the features of src/features.ts with those that every service has',
    ),
    rule(
      'no-import-of-commands',
      '^(src/(?!cli/|cli\\.ts$)|plugins|routes|bench|scripts)',
      '^src/cli/',
      'only src/cli.ts and tests import src/cli',
    ),
    rule(
      'cli-imports',
      '^src/cli',
      '^src/(http|app|server|services|workers|logging)|node_modules/(fastify|@fastify|pino)/',
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
    {
      name: 'no-dev-dependencies',
      severity: 'error',
      comment: 'npm ci --omit=dev must install everything that production code imports',
      from: { path: '^(src|plugins|routes)' },
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
