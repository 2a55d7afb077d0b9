/** Each command of docs/load-testing.md, on a service of its own: the service counts what the load generator has sent. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import t from 'tap'
import {
  isInstalled,
  runInShell,
  SEEDED_USERS,
  type SeededService,
  startSeeded,
  succeeds,
} from '../support/load-kit.ts'

const DOCUMENT = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'load-testing.md'), 'utf8')

/** The commands of the table by tool. */
const COMMANDS = new Map(
  [...DOCUMENT.matchAll(/^\| (\w+) \| `((?:k6|npm) run [^`]+)` \|/gm)].map(([, tool = '', command = '']) => [
    tool,
    command,
  ]),
)

interface Tool {
  readonly isInstalled: boolean
  /** Finds in the output how many responses the tool has received. */
  readonly received: RegExp
  /** Responses that the tool has not read at its end. */
  readonly unread: number
  /** What the mixed profile has besides `GET /account`. */
  readonly isMixed?: boolean
  /** Writes the file that the tool reads instead of the tokens. */
  readonly seed?: (service: SeededService) => Promise<void>
  /** Added to the command of the document: JMeter reads no environment. */
  readonly options?: (service: SeededService) => string
}

const TOOLS: Readonly<Record<string, Tool>> = {
  k6: { isInstalled: isInstalled('k6'), received: /k6 has sent ([\d,]+) requests/, unread: 0, isMixed: true },
  Locust: {
    isInstalled: isInstalled('locust'),
    received: /Aggregated +(\d+) .*\n\nResponse time/,
    unread: 0,
    isMixed: true,
  },
  wrk: { isInstalled: isInstalled('wrk'), received: /(\d+) requests in/, unread: 64 },
  autocannon: {
    isInstalled: true,
    received: /^([\d,]+) responses/m,
    unread: 64,
  },
  JMeter: {
    // The one of Debian 12 is 2.13, which loads no plan on the Java of Debian 12.
    isInstalled: isInstalled('jmeter') && succeeds("jmeter -j /dev/null --version 2>&1 | grep -q ' 5[.]'"),
    received: /summary = +(\d+) in/,
    unread: 0,
    seed: service => service.seed('users.csv', '--format', 'csv'),
    options: ({ port, folder }) => `-Jport=${port} -Jusers=${folder}/users.csv -Jseconds=1`,
  },
  vegeta: {
    isInstalled: isInstalled('vegeta'),
    received: /^Requests +\[.*\] +(\d+),/m,
    unread: 0,
    seed: service => service.seed('targets.json', '--format', 'vegeta', '--url', service.url),
    options: ({ folder }) => `&& vegeta report ${folder}/results.bin`,
  },
  hey: { isInstalled: isInstalled('hey'), received: /\[200\]\s+(\d+) responses/, unread: 0 },
}

/** Load at full speed takes all cores. Fewer seconds may be too few for each request of the mixed profile. */
const secondsOf = (tool: string): number => (TOOLS[tool]?.isMixed ? 3 : 1)

/** The command of the document for this service, for a short time. */
const commandFor = (tool: string, service: SeededService): string =>
  `${COMMANDS.get(tool)} ${TOOLS[tool]?.options?.(service) ?? ''}`
    .replaceAll('http://localhost:3000', service.url)
    .replaceAll(/(?<![\w/])data\//g, `${service.folder}/`)
    .replaceAll(/10s\b/g, `${secondsOf(tool)}s`)

const numberIn = (text = ''): number => Number(text.replaceAll(',', ''))

t.test('every tool of the table is tested', async t => {
  t.same([...COMMANDS.keys()].sort(), Object.keys(TOOLS).sort())
})

for (const [tool, { isInstalled, received, unread, seed, isMixed = false }] of Object.entries(TOOLS))
  t.test(
    `${tool}: the service counts the requests that it sends`,
    { skip: !isInstalled && `${tool} is not installed` },
    async t => {
      const service = await startSeeded(t)
      await seed?.(service)
      const seconds = secondsOf(tool)
      const env = { ...service.env, DURATION: `${seconds}s`, SECONDS: String(seconds) }
      const { code, stdout, stderr } = await runInShell(t, commandFor(tool, service), env)
      const output = stdout + stderr
      // 99: a slow machine exceeds the thresholds for durations of k6.
      t.ok(code === 0 || (tool === 'k6' && code === 99), `exit code ${code}`, { output })
      const [, sent] = received.exec(output) ?? []
      const [, counted] = /\btotal +([\d,]+)/.exec(output) ?? []
      const difference = numberIn(counted) - numberIn(sent)
      t.ok(numberIn(sent) > 0 && difference >= 0 && difference <= unread, `${sent} sent, ${counted} counted`)
      const routes = isMixed ? ['GET /users', 'PUT /account', 'POST /account/sign-in'] : []
      for (const route of ['GET /account', ...routes]) t.match(output, new RegExp(`${route} 200 +[\\d,]+`))
      t.notMatch(output, /(?:GET|PUT|POST) \/\S+ (?:[345]\d\d) +\d/, 'no errors')
    },
  )

/** A line of `-format=json`, as vegeta documents it. */
const isVegetaTarget = new Ajv().compile({
  type: 'object',
  required: ['method', 'url'],
  additionalProperties: false,
  properties: {
    method: { type: 'string' },
    url: { type: 'string' },
    body: { type: 'string' },
    header: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  },
})

t.test('vegeta: its targets have its format, and the service responds to each with 200', async t => {
  const service = await startSeeded(t)
  await service.seed('targets.json', '--format', 'vegeta', '--url', service.url)
  const lines = readFileSync(join(service.folder, 'targets.json'), 'utf8').trimEnd().split('\n')
  const targets = lines.map(line => JSON.parse(line))
  t.same(
    targets.filter(target => !isVegetaTarget(target)),
    [],
  )
  const statuses = targets.map(async ({ url, method, header }) => {
    const headers = Object.entries<string[]>(header).map(([name, [value = '']]): [string, string] => [
      name,
      value,
    ])
    return (await fetch(url, { method, headers })).status
  })
  t.same(await Promise.all(statuses), Array(SEEDED_USERS).fill(200))
})
