/** Imports point one way: routes → plugins → src; inside src, app → storage → auth → users. */
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
      '^(plugins|routes|test|bench)',
      'src is loaded by them, and can be read without them',
    ),
    rule(
      'plugins-know-no-routes',
      '^plugins',
      '^(routes|test|bench)',
      'a step of the processing serves every route',
    ),
    rule(
      'routes-take-no-code-of-plugins',
      '^routes',
      '^(plugins|test|bench)',
      'routes see plugins through the types they add',
    ),
    rule(
      'users-stand-alone',
      '^src/users',
      '^src/(auth|storage|app|services|config)',
      'the rules of users know no engine and no session',
    ),
    rule(
      'auth-knows-no-engine',
      '^src/auth',
      '^src/(storage|app|services|config)',
      'who is asking does not depend on where it is kept',
    ),
    rule(
      'users-and-auth-know-no-fastify',
      '^src/(users|auth)',
      'node_modules/(fastify|@fastify|better-sqlite3|kysely|pg)/',
      'they are the service, not its transport',
    ),
    rule(
      'engines-stay-in-storage',
      '^(src/(?!storage)|plugins|routes)',
      'node_modules/(better-sqlite3|kysely|pg)/',
      'the interfaces are what the rest sees',
    ),
    rule(
      'no-dev-dependencies',
      '^(src|plugins|routes)',
      'node_modules/(tap|autocannon|fast-check|playwright-core)/',
      'npm ci --omit=dev has to be enough',
    ),
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
