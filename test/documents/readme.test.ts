/**
 * README.md in a copy of a fresh checkout, word for word: its files are written, its commands run in a shell, and print what it says. So
 * do the `console` blocks of the API reference.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { listening } from '../../scripts/listening.ts'
import { bearer, temporaryFolder } from '../support/build.ts'
import { UNMEASURED } from '../support/process.ts'
import { copyCheckout } from '../support/project-copy.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const README = readFileSync(join(PROJECT, 'README.md'), 'utf8')

/** In the order in which they are read: the reference continues the quickstart. */
const TEXT = [README, readFileSync(join(PROJECT, 'docs/api.md'), 'utf8')].join('\n')

const blocksOf = (text: string, language: string): string[] =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, each]) => each === language)
    .map(([, , block = '']) => block)

interface Step {
  readonly command: string
  readonly output: string
}

const steps: Step[] = blocksOf(TEXT, 'console').flatMap(block =>
  block
    .split(/^\$ /m)
    .slice(1)
    .map(text => {
      const [command = '', ...output] = text.split('\n')
      return { command, output: output.join('\n').trim() }
    }),
)

/** What differs from run to run. */
const withoutChance = (text: string): string =>
  text
    .replaceAll(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>')
    .replaceAll(/gate_pat_\w{49}/g, '<key>')
    .replaceAll(/gate_pat_\w{4}/g, '<prefix>')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
    .trim()

/** The output with an `…` where the document has one. */
const abridged = (output: string, documented: string): string => {
  const parts = documented.split('…')
  const pattern = new RegExp(`^${parts.map(part => RegExp.escape(part)).join('[^]+')}$`)
  return pattern.test(output) ? documented : output
}

const SEPARATOR = '--- next ---'

/** Milliseconds until a process that does not start counts as failed, on a machine with ten times as much work as cores. */
const START_LIMIT = 60_000

/** Only the port differs from what a reader has: others may use 3000. The service stops without a delay. */
const { NODE_ENV: _ofTests, ...inherited } = process.env
const env = { ...inherited, ...UNMEASURED, PORT: '0', DRAIN_DELAY: '0s' }

const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  // The whole group: a signal to npm alone may not reach the service.
  process.kill(-(child.pid ?? 0), 'SIGTERM')
  await exited
}

/** Runs a command that starts the service. */
const start = async (t: Test, cwd: string, command: string) => {
  const child = spawn('sh', ['-c', command], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => end(child))
  const { url } = await listening(child, START_LIMIT)
  return { url, stop: () => end(child) }
}

/** @returns the standard output of a command that must succeed and print nothing to standard error. */
const run = (t: Test, cwd: string, command: string): string => {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', command], { cwd, env, encoding: 'utf8' })
  t.equal(status, 0, command, { stderr })
  t.equal(stderr, '', command)
  return stdout
}

t.test('README.md works word for word in a fresh checkout (§7.1)', async t => {
  const folder = temporaryFolder(t)
  copyCheckout(folder)
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'))

  const commands = blocksOf(README, 'sh').flatMap(block => block.trim().split('\n'))
  t.equal(commands.length, 5, 'every command is run below')
  const [install = '', first = '', seed = '', second = '', k6 = ''] = commands
  t.equal(install, 'npm ci', 'the packages are linked here')

  /** The files of the page, by their paths. */
  const write = (url: string): string[] =>
    blocksOf(README, 'ts').map(block => {
      const [, path = ''] = /^\/\/ (\S+)\n/.exec(block) ?? []
      const file = join(folder, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, block.replaceAll('http://localhost:3000', url))
      return path
    })
  // Before the start, which the text asks for after them: the routes of the page are loaded.
  t.same(write(''), ['routes/private/notes/routes.ts', 'data/ann.ts'])

  const quickstart = await start(t, folder, first)
  write(quickstart.url)
  const script = steps.map(
    ({ command }) =>
      `${command.replaceAll('localhost:3000', new URL(quickstart.url).host)}\necho; echo '${SEPARATOR}'`,
  )
  const outputs = run(t, folder, script.join('\n')).split(SEPARATOR).map(withoutChance)
  t.ok(steps.length >= 21)
  for (const [index, { command, output }] of steps.entries())
    t.equal(abridged(outputs[index] ?? '', output), output, command)

  const [command = ''] = /npm exec -c "node data\/\S+"/.exec(README) ?? []
  t.equal(run(t, folder, command), 'Ann Keeper\n')

  const account = { email: 'ann@example.com', password: 'four hens crossed the moat' }
  const post = (path: string, body: object, headers = {}) =>
    fetch(`${quickstart.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const signedIn = await (await post('/account/sign-in', account)).json()
  const { accessToken, user } = signedIn as { accessToken: string; user: { id: string } }
  const noted = await post('/notes', { text: 'buy hay' }, bearer(accessToken))
  t.same([noted.status, await noted.json()], [201, { text: 'buy hay', by: user.id }], 'the added route')
  await quickstart.stop()

  // test/load-kit/tools.test.ts runs k6.
  t.equal(k6.replace(/\S+$/, ''), 'k6 run ')
  t.ok(existsSync(join(folder, k6.split(' ').at(-1) ?? '')))
  run(t, folder, seed.replace('npm ci && ', '').replace('--users 100000', '--users 10 2>&1'))
  const loaded = await start(t, folder, second)
  const tokens = readFileSync(join(folder, 'data/tokens.txt'), 'utf8').trim().split('\n')
  t.equal(tokens.length, 10)
  const headers = bearer(tokens[0] ?? '')
  t.equal((await fetch(`${loaded.url}/account`, { headers })).status, 200)
})

t.test('docs/extending.md shows the route of README.md', async t => {
  const [route = ''] = blocksOf(README, 'ts')
  t.match(route, /^\/\/ routes\//)
  t.ok(readFileSync(join(PROJECT, 'docs/extending.md'), 'utf8').includes(route))
})
