/** Load generators of examples/load refuse a service that is not prepared, with a sentence that says what to do. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { ADMIN_KEY, asAdmin, build, type Context, signUp, temporaryFolder } from '../support/build.ts'
import { isInstalled, runInShell, SEEDED_USERS } from '../support/load-kit.ts'

/** Runs `npm run load` with a command that prints a line. */
const load = (t: Test, env: Record<string, string>, command = 'echo started') =>
  runInShell(t, `npm run --silent load -- ${command}`, env)

/** In this process: one of its own, whose users `seed` adds, takes as much CPU as all that load generators do here. */
const startService = async (t: Context, users: number, env: Record<string, string> = {}) => {
  const app = await build(t, { env })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const tokens: string[] = []
  for (let count = 0; count < users; count += 1) tokens.push((await signUp(app)).token)
  const TOKENS = join(temporaryFolder(t), 'tokens.txt')
  writeFileSync(TOKENS, `${tokens.join('\n')}\n`)
  return { url, env: { BASE_URL: url, ADMIN_KEY, TOKENS } }
}

const service = await startService(t, SEEDED_USERS)

t.test('a prepared service is described, and the command runs', async t => {
  const { code, stdout, stderr } = await load(t, service.env)
  t.equal(code, 0)
  t.equal(stdout, 'started\n')
  t.match(stderr, new RegExp(`^Gatehouse \\d+\\.\\d+\\.\\d+, sqlite, 1 worker, ${SEEDED_USERS} users$`, 'm'))
  t.match(stderr, /^total +0$/m)
})

t.test('requests of the command are counted by route and status, with their exit code', async t => {
  const requests = `for path in account account users nowhere; do curl -s ${service.url}/$path; done; exit 7`
  const { code, stderr } = await load(t, service.env, `bash -c '${requests}'`)
  t.equal(code, 7)
  t.match(stderr, /^GET \/account 401 +2 +\d+\.\d{3} ms +[≤>] [\d.]+ ms$/m)
  t.match(stderr, /^GET \/users 401 +1 /m)
  t.match(stderr, /^GET unknown 404 +1 /m)
  t.match(stderr, /^total +4$/m)
})

t.test('a command that is not installed is named', async t => {
  const { code, stderr } = await load(t, service.env, 'no-such-load-generator')
  t.equal(code, 1)
  t.match(stderr, /^no-such-load-generator is not installed$/m)
})

interface Refusal {
  readonly of: string
  readonly env: (t: Test) => Promise<Record<string, string>>
  readonly says: RegExp
}

/** Responds to every request with an empty object. */
const startOther = async (t: Test): Promise<string> => {
  const server = createServer((_request, response) => response.end('{}')).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const tokenFile = (t: Test, lines: number): string => {
  const file = join(temporaryFolder(t), 'tokens.txt')
  writeFileSync(file, 'a.wrong.token\n'.repeat(lines))
  return file
}

const createMetricsKey = async (): Promise<string> => {
  const response = await fetch(`${service.url}/admin/keys`, {
    method: 'POST',
    headers: { ...asAdmin, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'metrics only', scopes: ['metrics:read'] }),
  })
  t.equal(response.status, 201)
  return ((await response.json()) as { adminKey: string }).adminKey
}

const REFUSALS: readonly Refusal[] = [
  {
    of: 'an address at which nothing listens',
    env: async () => ({ BASE_URL: `http://127.0.0.1:${await freePort()}` }),
    says: /Nothing listens at http:\S+: start the service with RATE_LIMIT=off ADMIN_KEY=<key> npm start/,
  },
  {
    of: 'another service',
    env: async t => ({ BASE_URL: await startOther(t) }),
    says: /http:\S+ is not a Gatehouse, or an older one/,
  },
  {
    of: 'another admin key',
    env: async () => ({ ADMIN_KEY: 'another-admin-key-0123456789abcdef' }),
    says: /responds with 401: ADMIN_KEY is not an admin key of the service/,
  },
  {
    of: 'an admin key without the scopes',
    env: async () => ({ ADMIN_KEY: await createMetricsKey() }),
    says: /responds with 403: ADMIN_KEY needs the scopes status:read and metrics:read/,
  },
  {
    of: 'rate limits',
    env: async t => (await startService(t, 0, { RATE_LIMIT: 'on' })).env,
    says: /The service has rate limits: start it with RATE_LIMIT=off ADMIN_KEY=<key> npm start/,
  },
  {
    of: 'a missing file of tokens',
    env: async () => ({ TOKENS: '/no/tokens.txt' }),
    says: /\/no\/tokens\.txt cannot be read\. Add users and write their tokens: npm run cli -- seed/,
  },
  {
    of: 'more tokens than users',
    env: async t => ({ TOKENS: tokenFile(t, SEEDED_USERS + 1) }),
    says: /The service has 200 users, the file 201 tokens\. Use the database of the service: npm run cli -- seed/,
  },
  {
    of: 'tokens of another service',
    env: async t => ({ TOKENS: tokenFile(t, SEEDED_USERS) }),
    says: /The service responds to the first token with 401\. Write the tokens anew/,
  },
]

/** The load generators that check the service, and what their output has once they send requests. */
const LOADERS = [
  {
    name: 'run.js',
    command: `'${process.execPath}' examples/load/run.js echo started`,
    started: /started/,
    skip: false,
  },
  {
    name: 'k6',
    command: 'k6 run -q examples/load/k6.js',
    started: /k6 has sent/,
    skip: !isInstalled('k6') && 'k6 is not installed',
  },
] as const

for (const { name, command, started, skip } of LOADERS)
  t.test(`${name} refuses a service that is not prepared, and sends nothing`, { skip }, async t => {
    for (const { of, env, says } of REFUSALS) {
      const { code, stdout, stderr } = await runInShell(t, command, { ...service.env, ...(await env(t)) })
      t.ok(code !== 0 && code !== null, `${of}: exit code ${code}`)
      t.match(stderr, says, of)
      t.notMatch(stdout + stderr, started, of)
    }
  })

t.test(
  'k6 fails when the service has counted requests of another client',
  { skip: !isInstalled('k6') && 'k6 is not installed' },
  async t => {
    const env = { ...service.env, DURATION: '2s', PROFILE: 'account' }
    const k6 = runInShell(t, 'k6 run -q examples/load/k6.js', env)
    let ended = false
    const other = (async () => {
      while (!ended) await (await fetch(`${service.url}/account`)).arrayBuffer()
    })()
    const { code, stdout } = await k6
    ended = true
    await other
    t.equal(code, 99)
    t.match(stdout, /uncounted_requests\s+✗ 'count==0' count=-\d+/)
  },
)
