/** Imports point one way: routes → plugins → src; inside src, app → storage → accounts → auth → users. */
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
      'src-knows-no-http-tree',
      '^src',
      '^(plugins|routes|test|bench|scripts)',
      'src is loaded by them, and can be read without them',
    ),
    rule(
      'plugins-know-no-routes',
      '^plugins',
      '^(routes|test|bench|scripts)',
      'a step of the processing serves every route',
    ),
    rule(
      'routes-take-no-code-of-plugins',
      '^routes',
      '^(plugins|test|bench|scripts)',
      'routes see plugins through the types they add',
    ),
    rule(
      'routes-know-no-engine',
      '^routes',
      '^src/(storage|mail|http|app|server|services|config|logging)',
      'routes translate HTTP: they call use cases',
    ),
    rule('plugins-know-no-engine', '^plugins', '^src/storage', 'the services are what plugins find'),
    rule(
      'users-stand-alone',
      '^src/users',
      '^src/(?!users/|audit-log/|(ids|errors|maybe-promise)\\.ts$)',
      'the rules of users know no engine, no session and no HTTP',
    ),
    rule(
      'auth-knows-no-engine',
      '^src/auth',
      '^src/(?!auth/|users/|audit-log/|concurrency/|(ids|errors|files|maybe-promise)\\.ts$)',
      'who is asking does not depend on where it is kept, nor on HTTP',
    ),
    rule(
      'audit-log-stands-alone',
      '^src/audit-log',
      '^src/(?!audit-log/|users/|(ids|errors|maybe-promise)\\.ts$)',
      'an event knows the user that it is about',
    ),
    rule(
      'passwords-know-no-engine',
      '^src/passwords',
      '^src/(?!passwords/|users/|concurrency/|(ids|errors)\\.ts$)',
      'hashing does not depend on where a hash is stored',
    ),
    rule(
      'rate-limits-know-no-engine',
      '^src/rate-limits',
      '^src/(?!rate-limits/|users/|audit-log/|concurrency/|(ids|errors)\\.ts$)',
      'counting does not depend on where counts are stored',
    ),
    rule(
      'accounts-know-no-engine',
      '^src/accounts',
      '^src/(?!accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|mail/kinds\\.ts$|(ids|errors|maybe-promise)\\.ts$)',
      'what becomes of an account does not depend on where it is kept, nor on HTTP',
    ),
    rule(
      'queues-and-locks-know-nothing',
      '^src/concurrency',
      '^src/(?!concurrency/|errors\\.ts$)',
      'what waits is the business of whoever lets it wait',
    ),
    rule(
      'input-knows-no-transport',
      '^src/validation',
      '^src/(?!validation/|accounts/|auth/|passwords/|users/|audit-log/|(ids|errors)\\.ts$)',
      'what is taken from outside is read alike over HTTP and on the command line',
    ),
    rule(
      'storage-knows-no-http',
      '^src/storage',
      '^src/(?!storage/|accounts/|auth/|passwords/|rate-limits/|users/|audit-log/|concurrency/|(ids|errors|files|maybe-promise)\\.ts$)',
      'an engine keeps what it is given',
    ),
    rule(
      'mail-knows-no-use-case',
      '^src/mail/',
      '^src/(?!mail/|rate-limits/|(ids|errors)\\.ts$)',
      'use cases declare kinds of mail; sending knows no use case, no engine and no HTTP',
    ),
    rule(
      'only-the-command-line-runs-commands',
      '^(src/(?!cli/|cli\\.ts$)|plugins|routes|bench|scripts)',
      '^src/cli/',
      'what others need is no command',
    ),
    rule(
      'commands-know-no-http',
      '^src/cli',
      '^src/(http|app|server|services|workers|logging)|node_modules/(fastify|@fastify|pino)/',
      'they run use cases on a store, beside the service',
    ),
    rule(
      'the-service-knows-no-fastify',
      '^src/(users|audit-log|auth|passwords|rate-limits|accounts|concurrency|storage|mail|validation)/',
      'node_modules/(fastify|@fastify|pino)/',
      'they are the service, not its transport',
    ),
    rule(
      'engines-stay-in-storage',
      '^(src/(?!storage)|plugins|routes)',
      'node_modules/(better-sqlite3|kysely|pg)/',
      'the interfaces are what the rest sees',
    ),
    rule(
      'nodemailer-stays-in-mail',
      '^(src/(?!mail/)|plugins|routes)',
      'node_modules/nodemailer/',
      'the interface is what the rest sees',
    ),
    {
      name: 'no-dev-dependencies',
      severity: 'error',
      comment: 'npm ci --omit=dev has to be enough',
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
