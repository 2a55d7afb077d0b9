/** `npm run dev`: every change of the code restarts the service. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import packageJson from '../../package.json' with { type: 'json' }
import { ADMIN_KEY, JWT_SECRET } from '../support/build.ts'
import { projectTree } from '../support/project-copy.ts'
import { until } from '../support/until.ts'

/** Milliseconds until a missing start counts as failed. */
const LIMIT = 30_000

const startDev = (t: Test, folder: string) => {
  const bin = join(import.meta.dirname, '..', '..', 'node_modules', '.bin')
  // A process group with the shell and the service.
  const child = spawn('sh', ['-c', packageJson.scripts.dev], {
    cwd: folder,
    detached: true,
    env: {
      ...process.env,
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      _TAPJS_PROCESSINFO_COVERAGE_: '0',
      NODE_ENV: 'test',
      PORT: '0',
      DATABASE_URL: `sqlite:${join(folder, 'test.db')}`,
      ADMIN_KEY,
      JWT_SECRET,
      DRAIN_DELAY: '0s',
      MAIL_URL: 'off',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      output += chunk
    })
  const kill = (signal: NodeJS.Signals): boolean => {
    try {
      return process.kill(-(child.pid ?? 0), signal)
    } catch {
      return false
    }
  }
  t.teardown(() => kill('SIGKILL'))
  const starts = (): number => output.split('listening at').length - 1
  return {
    output: () => output,
    starts,
    /** Whether it starts more than so many times. */
    startsAfter: async (times: number): Promise<boolean> =>
      (await until(starts, count => count > times, LIMIT)) > times,
    /** @returns whether any process is left. */
    async stop(): Promise<boolean> {
      kill('SIGTERM')
      await exited
      return until(
        () => kill('SIGCONT'),
        isLeft => !isLeft,
        LIMIT,
      )
    },
  }
}

/** Saves like an editor: a new file replaces the old one. */
const replace = (file: string, text: string): void => {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

t.test('every change restarts the service: replaced, written, added and removed files', async t => {
  const { folder } = projectTree(t, { 'scripts/dev.ts': readFileSync('scripts/dev.ts', 'utf8') })
  const dev = startDev(t, folder)
  t.ok(await dev.startsAfter(0), dev.output())
  const file = join(folder, 'src', 'base', 'errors.ts')
  const text = readFileSync(file, 'utf8')
  const added = join(folder, 'routes', 'public', 'added')
  const changes: Record<string, () => void> = {
    'replaced by rename': () => replace(file, `${text}// 1\n`),
    'replaced by rename again': () => replace(file, `${text}// 2\n`),
    'and again': () => replace(file, `${text}// 3\n`),
    'written in place': () => writeFileSync(file, text),
    'a folder with a route is added': () => {
      mkdirSync(added)
      writeFileSync(join(added, 'routes.ts'), 'export default async () => undefined\n')
    },
    'a file in that folder is replaced': () =>
      replace(join(added, 'routes.ts'), 'export default async () => undefined // 1\n'),
    'the folder is removed': () => rmSync(added, { recursive: true }),
  }
  for (const [what, change] of Object.entries(changes)) {
    const before = dev.starts()
    change()
    t.ok(await dev.startsAfter(before), what)
  }
  t.notOk(await dev.stop(), 'nothing of it is left')
})

t.test('a service that cannot start waits for the next change', async t => {
  const broken = 'export default 1 +\n'
  const { folder } = projectTree(t, {
    'scripts/dev.ts': readFileSync('scripts/dev.ts', 'utf8'),
    'src/server.ts': broken,
  })
  const dev = startDev(t, folder)
  await until(dev.output, output => output.includes('waiting for a change'), LIMIT)
  t.match(dev.output(), 'waiting for a change')
  replace(join(folder, 'src', 'server.ts'), readFileSync('src/server.ts', 'utf8'))
  t.ok(await dev.startsAfter(0), dev.output())
  t.notOk(await dev.stop())
})
