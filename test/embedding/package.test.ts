import { execFile, execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { listening } from '../../scripts/listening.ts'
import { ADMIN_KEY, bearer, PASSWORD, temporaryFolder } from '../support/build.ts'
import { UNMEASURED } from '../support/process.ts'
import { remoteAccountStatus, remoteSignUp } from '../support/remote-accounts.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const SOURCES = [
  'src',
  'plugins',
  'routes',
  'client',
  'verifier',
  'scripts/build.ts',
  'scripts/pack.ts',
  'package.json',
]
const OTHERS = [
  'tsconfig.json',
  'tsconfig.build.json',
  '.env.example',
  'CHANGELOG.md',
  'README.md',
  'LICENSE',
]

/** The Node of the tests comes first, also for scripts that begin with `#!/usr/bin/env node`. */
const env = {
  ...process.env,
  ...UNMEASURED,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
}

const run = async (cwd: string, file: string, args: readonly string[], variables = {}) =>
  (await promisify(execFile)(file, args, { cwd, env: { ...env, ...variables } })).stdout

/** Packs a copy of the project. @returns the folder with the tarball. */
const pack = async (): Promise<string> => {
  const copy = temporaryFolder(t)
  for (const name of [...SOURCES, ...OTHERS])
    cpSync(join(PROJECT, name), join(copy, name), { recursive: true })
  symlinkSync(join(PROJECT, 'node_modules'), join(copy, 'node_modules'))
  // `npm run types` checks the sources, which takes half of a build.
  const settings = JSON.parse(readFileSync(join(copy, 'tsconfig.build.json'), 'utf8'))
  settings.compilerOptions.noCheck = true
  writeFileSync(join(copy, 'tsconfig.build.json'), JSON.stringify(settings))
  const before = readFileSync(join(copy, 'package.json'), 'utf8')
  await run(copy, 'npm', ['pack', '--silent'])
  t.equal(readFileSync(join(copy, 'package.json'), 'utf8'), before, 'package.json is restored')
  t.notOk(existsSync(join(copy, 'package.json.original')))
  return copy
}

/** Installs the tarball like npm does, but without a registry. @returns the folder of the project. */
const install = async (tarball: string): Promise<string> => {
  const project = temporaryFolder(t)
  const packages = join(project, 'node_modules')
  mkdirSync(join(packages, 'gatehouse'), { recursive: true })
  await run(project, 'tar', ['-xzf', tarball, '-C', 'node_modules/gatehouse', '--strip-components=1'])
  const { dependencies, optionalDependencies, bin } = JSON.parse(
    readFileSync(join(packages, 'gatehouse/package.json'), 'utf8'),
  )
  t.equal(optionalDependencies, undefined, 'the package does not bring a Node')
  for (const name of [...Object.keys(dependencies), '@types/node']) {
    mkdirSync(dirname(join(packages, name)), { recursive: true })
    symlinkSync(realpathSync(join(PROJECT, 'node_modules', name)), join(packages, name))
  }
  mkdirSync(join(packages, '.bin'))
  for (const [name, file] of Object.entries<string>(bin))
    symlinkSync(join('..', 'gatehouse', file), join(packages, '.bin', name))
  writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }')
  return project
}

const HOST = `
import Fastify from 'fastify'
import gatehouse, { type GatehouseConfig, ServiceError, type ServicesOf } from 'gatehouse'
import type {} from 'gatehouse/route-types'
import { visits } from './visits/visits.ts'

declare module 'gatehouse/feature' {
  interface HostServices extends ServicesOf<[typeof visits]> {}
}

const app = Fastify()
const config: GatehouseConfig<[typeof visits]> = { DATABASE_URL: 'sqlite:data/host.db', LOG_LEVEL: 'silent', VISITS_MAX: 3 }
// @ts-expect-error No feature declares it.
export const misspelled: GatehouseConfig<[typeof visits]> = { VISIT_MAX: 3 }
const types: string[] = []
await app.register(gatehouse, {
  prefix: '/auth',
  config,
  routes: './routes',
  features: [visits],
  onEvent: ({ type }) => types.push(type),
  mails: { templates: { verification: ({ name, link }) => ({ subject: name, text: link }) } },
})
app.setErrorHandler((error, _request, reply) => {
  if (error instanceof ServiceError) return reply.code(error.statusCode).send({ errors: error.errors })
  throw error
})
app.get('/hello', { preHandler: app.gatehouse.requireUser }, request => \`Hello \${request.user.firstName}\`)

const account = { email: 'ada@example.com', password: '${PASSWORD}' }
const post = (url: string, payload: object) => app.inject({ method: 'POST', url, payload })
await post('/auth/account/sign-up', { ...account, firstName: 'Ada' })
const { accessToken } = (await post('/auth/account/sign-in', account)).json()
const headers = { authorization: \`Bearer \${accessToken}\` }
const hello = await app.inject({ url: '/hello', headers })
const anonymous = await app.inject('/hello')
const { visits: counter } = app.gatehouse.services
const { id } = (await app.inject({ url: '/auth/account', headers })).json()
const counts = [await counter.add(id), await counter.add(id)]
const place = await app.inject({ url: '/auth/place', headers })
const visit = await app.inject({ method: 'POST', url: '/auth/visits', headers, payload: { place: 'home' } })
const url = '/auth/security/visits'
const page = await app.inject({ url, cookies: { ACCESS_TOKEN: accessToken } })
const heading = /<h1>.*<[/]h1>/.exec(page.body)?.[0]
const form = { 'content-type': 'application/x-www-form-urlencoded' }
const invalid = await app.inject({ method: 'POST', url, headers: form, cookies: { ACCESS_TOKEN: accessToken }, payload: 'place=' })
const pages = [page.statusCode, heading, invalid.statusCode]
await app.close()
console.log(JSON.stringify([hello.body, anonymous.json(), place.json(), types, counts, visit.json(), pages]))
`

const VISITS = `
import { defineFeature, firstRow, integer, invalidatesNothing, type Steps, table, type Write } from 'gatehouse/feature'

function* addVisit(userId: string): Steps<Write<number>> {
  const row = yield* firstRow<{ count: number }>({
    text: \`INSERT INTO visits (id, user_key, count) SELECT $1, key, 1 FROM users WHERE id = $1
      ON CONFLICT (id) DO UPDATE SET count = visits.count + 1 RETURNING count\`,
    values: [userId],
  })
  return invalidatesNothing(row?.count ?? 0)
}

export const visits = defineFeature({
  name: 'visits',
  module: import.meta.url,
  migrations: {
    '0001_visits': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('visits')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column => column.notNull().unique())
          .addColumn('count', 'integer', column => column.notNull())
          .execute()
      },
    },
  },
  tables: { visits: table<{ id: string; user_key: number; count: number }>({ owner: 'user_key', key: 'id' }) },
  operations: { addVisit },
  settings: { VISITS_MAX: { read: integer(1, 10), default: '5', description: 'how many visits' } },
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  services: { visits: ({ store }) => ({ add: (userId: string) => store.addVisit(userId) }) },
})
`

const PLACE = `
import type { FastifyPluginAsync } from 'fastify'

const place: FastifyPluginAsync = async app => {
  app.get('', async request => ({ by: request.user.email, query: request.validatedData.query }))
}

export default place
`

/** What routes of features use, as docs/embedding.md describes it. */
const VISITS_ROUTES = `
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { refuseImpersonation } from 'gatehouse/request-context'
import { withHeaders } from 'gatehouse/response-headers'
import { ErrorBody, Strict } from 'gatehouse/schemas'

const Visit = Type.Object({ count: Type.Integer(), from: Type.Union([Type.String(), Type.Null()]) })

const routes: FastifyPluginAsyncTypebox = async app => {
  const { visits } = app.services
  app.post(
    '',
    {
      config: { rateLimit: 'mail', writeLimit: false },
      schema: {
        operationId: 'addVisit',
        summary: 'Add a visit',
        body: Strict({ place: Type.String({ minLength: 1 }) }),
        response: { 201: withHeaders(Visit, 'Location'), 409: ErrorBody },
      },
    },
    async (request, reply) => {
      refuseImpersonation(request)
      const { place } = request.validatedData.body
      if (place === '') throw app.httpErrors.conflict('There is no place')
      reply.code(201).header('location', '/auth/visits')
      return { count: await visits.add(request.user.id), from: request.clientAddress }
    },
  )
}

export default routes
`

const VISITS_PAGE_ROUTES = `
import type { FastifyPluginAsync } from 'fastify'
import { FormText, ProofFields, pageForm } from 'gatehouse/schemas'
import { visitsPage } from '../../../../pages.ts'

interface VisitForm {
  place: string
  password?: string
  code?: string
}

const routes: FastifyPluginAsync = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', { schema: { hide: true } }, async (request, reply) => {
    const response = await app.callApi(request, { method: 'GET', path: '/account' })
    if (response.status >= 400) return reply.sendFailure(response)
    return reply.sendPage(context => visitsPage(context))
  })

  app.post<{ Body: VisitForm }>('', pageForm({ place: FormText, ...ProofFields }), (request, reply) => {
    const { place, ...proof } = request.validatedData.body
    const submission = {
      call: { method: 'POST', path: '/visits', body: { place } },
      proof,
      repeat: { action: 'security/visits', fields: { place } },
      form: async (errors: Parameters<typeof visitsPage>[1]) =>
        reply.sendPage(context => visitsPage(context, errors)),
    } as const
    return app.submitForm(request, reply, submission, () => reply.redirectToPage('security', 'visited'))
  })
}

export default routes
`

const VISITS_PAGES = `
import { type FeaturePages, Form, hiddenField, html, NO_ERRORS, type Page, type PageContext } from 'gatehouse/pages'

export const visitsPage = (context: PageContext, errors = NO_ERRORS): Page => {
  const form = new Form(context, errors)
  const field = form.field({ name: 'place', label: 'Place', autocomplete: 'off' })
  return {
    title: 'Visits',
    isSignedIn: true,
    hasErrors: form.hasErrors,
    body: html\`<h1>Visits</h1>
\${form.summary()}
<form method="post" action="\${context.root}security/visits">\${hiddenField('from', 'page')}\${field}<button>Add</button></form>\`,
  }
}

export default {
  notices: { en: { visited: 'The visit is added.' }, de: { visited: 'Der Besuch ist eingetragen.' } },
} satisfies FeaturePages
`

/** What docs/embedding.md names for the modules that features of a fork import. */
const IMPORTS: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...readFileSync(join(PROJECT, 'docs/embedding.md'), 'utf8').matchAll(
      /^\| `(#\S+)` \| `(gatehouse\/\S+)` \|/gm,
    ),
  ].map(([, alias = '', name = '']) => [alias, name]),
)

/** Copies an example to a host, with the imports of a host. */
const adaptExample = (project: string, name: string): void => {
  const example = join(PROJECT, 'examples', name)
  for (const path of globSync('**/*.ts', { cwd: example })) {
    const text = readFileSync(join(example, path), 'utf8').replace(
      /'(#[^']+)'/g,
      (_import, alias: string) => `'${IMPORTS[alias]}'`,
    )
    mkdirSync(dirname(join(project, name, path)), { recursive: true })
    writeFileSync(join(project, name, path), text)
  }
}

const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    // A host may be a package itself, whose declarations name the types of features.
    declaration: true,
    emitDeclarationOnly: true,
    outDir: 'declarations',
    skipLibCheck: false,
    allowImportingTsExtensions: true,
  },
  include: ['host.ts', 'visits', 'notes', 'pins', 'routes'],
}

/** The Node of the tests, and each other one of the machine from version 20. */
const nodes = (): readonly string[] => {
  const found = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, 'node'))
  const versions = new Map([[process.version, process.execPath]])
  for (const node of found.filter(existsSync)) {
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
    if (Number(/\d+/.exec(version)) >= 20) versions.set(version, versions.get(version) ?? node)
  }
  return [...versions.values()]
}

/** A service of its own that verifies tokens, also on Node 20. */
const VERIFIER = `
import { createVerifier } from 'gatehouse/verifier'

const [baseUrl, adminKey, token] = process.argv.slice(2)
const verifier = createVerifier({ baseUrl, adminKey })
const [known, unknown] = [await verifier.verify(token), await verifier.verify('x')]
console.log(JSON.stringify([known?.sub, unknown]))
verifier.close()
`

/** The client of the package, and one that the package generates. */
const CLIENT = `
import { createClient, isServiceError, memoryTokens } from 'gatehouse/client'
import { createClient as createOwnClient } from './generated.ts'

const baseUrl = process.argv[2] ?? ''
const gatehouse = createClient({ baseUrl, tokens: memoryTokens() })
await gatehouse.signUp({ email: 'eve@example.com', password: '${PASSWORD}' })
const { email } = await gatehouse.getAccount()
const status = await createOwnClient({ baseUrl }).getAccount().catch(error => isServiceError(error) && error.status)
console.log(JSON.stringify([email, status]))
`

/** A page of a browser: without the types of Node. */
const PAGE = `
import { createClient, isServiceError, memoryTokens, type Account } from 'gatehouse/client'

const gatehouse = createClient({ baseUrl: '', tokens: memoryTokens() })
export const names = async (signal: AbortSignal): Promise<string[]> => {
  const account: Account = await gatehouse.getAccount({ signal })
  const names: string[] = [account.email]
  for await (const { firstName } of gatehouse.listProfiles({ search: 'ann' })) names.push(firstName ?? '')
  return names
}
export const emailProblem = (error: unknown): string | undefined =>
  isServiceError(error, 409) ? error.errors.email?.[0] : undefined
// @ts-expect-error Administration is another client.
gatehouse.exportUsers()
`

const PAGE_TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2022', 'dom'],
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
    strict: true,
    skipLibCheck: false,
    noEmit: true,
  },
  include: ['page.ts'],
}

t.test('the packed tarball works in an empty project', async t => {
  const copy = await pack()
  const tarball = readdirSync(copy).find(name => name.endsWith('.tgz')) ?? ''
  const project = await install(join(copy, tarball))
  const shipped = globSync('**/*.ts', { cwd: join(project, 'node_modules/gatehouse') })
  t.same(
    shipped.filter(name => !name.endsWith('.d.ts')),
    [],
    'no sources',
  )

  writeFileSync(join(project, 'host.ts'), HOST)
  const files = {
    'visits/visits.ts': VISITS,
    'visits/pages.ts': VISITS_PAGES,
    'visits/routes/private/visits/routes.ts': VISITS_ROUTES,
    'visits/routes/public/security/visits/routes.ts': VISITS_PAGE_ROUTES,
    'routes/private/place/routes.ts': PLACE,
  }
  for (const name of ['notes', 'pins']) adaptExample(project, name)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, path)), { recursive: true })
    writeFileSync(join(project, path), text)
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  writeFileSync(join(project, 'page.ts'), PAGE)
  writeFileSync(join(project, 'page.json'), JSON.stringify(PAGE_TSCONFIG))
  const tsc = join(PROJECT, 'node_modules/typescript/bin/tsc')
  const types = await run(project, process.execPath, [tsc, '-p', '.']).catch(error => error.stdout)
  const pageTypes = await run(project, process.execPath, [tsc, '-p', 'page.json']).catch(
    error => error.stdout,
  )
  const output = await run(project, process.execPath, ['host.ts'])
  t.equal(types, '', 'the declarations type the host')
  t.equal(pageTypes, '', 'the declarations of the client type a page without the types of Node')
  t.same(JSON.parse(output), [
    'Hello Ada',
    { errors: { global: ['Sign in to use this route'] } },
    { by: 'ada@example.com', query: {} },
    ['user.signed-up', 'user.signed-in'],
    [1, 2],
    { count: 3, from: '127.0.0.1' },
    [200, '<h1>Visits</h1>', 400],
  ])

  const gatehouse = join(project, 'node_modules/.bin/gatehouse')
  const settings = {
    NODE_ENV: 'test',
    PORT: '0',
    LOG_LEVEL: 'info',
    DRAIN_DELAY: '0s',
    MAIL_URL: 'off',
    DATABASE_URL: 'sqlite:data/service.db',
    ADMIN_KEY,
  }
  const service = spawn(gatehouse, [], { cwd: project, env: { ...env, ...settings }, stdio: 'pipe' })
  t.teardown(() => service.kill('SIGKILL'))
  const { url } = await listening(service, 20_000)
  const { token } = await remoteSignUp({ url }, 'bob@example.com')
  t.equal(await remoteAccountStatus({ url }, token), 200)
  t.equal((await fetch(`${url}/docs`, { headers: bearer(token) })).status, 200)
  writeFileSync(join(project, 'client.ts'), CLIENT)
  const generator = join(project, 'node_modules/.bin/gatehouse-client')
  await run(project, generator, [`${url}/openapi.json`, '--output', 'generated.ts'])
  t.same(JSON.parse(await run(project, process.execPath, ['client.ts', url])), ['eve@example.com', 401])
  writeFileSync(join(project, 'verifier.js'), VERIFIER)
  const { id } = (await (await fetch(`${url}/account`, { headers: bearer(token) })).json()) as { id: string }
  for (const node of nodes()) {
    const output = await run(project, node, ['verifier.js', url, ADMIN_KEY, token])
    t.same(JSON.parse(output), [id, null], node)
  }
  t.match(await run(project, gatehouse, ['--help']), /^ {2}start +Start the service/m)
  t.match(await run(project, gatehouse, ['start', '--help']), /^Usage: gatehouse start/)
  const unknown = run(project, gatehouse, ['start', '--port', '1'])
  await t.rejects(unknown, { code: 2, stderr: /unknown option '--port'/ })
  await t.rejects(run(project, gatehouse, ['visits', 'list']), {
    code: 2,
    stderr: /unknown command 'visits'.*\nCommands of features that a host application adds are not part of/s,
  })
  const list = await run(project, gatehouse, ['users', 'list', '--json'], settings)
  t.match(JSON.parse(list), { results: [{ email: 'eve@example.com' }, { email: 'bob@example.com' }] })
  const exited = new Promise(resolve => service.once('exit', resolve))
  service.kill('SIGTERM')
  t.equal(await exited, 0)
})
