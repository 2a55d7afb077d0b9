/** The hashing threads: start, end, and waiting work (docs/design.md, "Tokens and sessions"). */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { outcomes, smallHashing, times } from '../support/hashing-threads.ts'

const PASSWORD = 'a pass phrase'

/** In the order in which they started. */
const started: Worker[] = []
process.on('worker', worker => started.push(worker))

t.test('threads start with the first work and end when idle', async t => {
  const before = started.length
  const hashing = smallHashing(t, { threads: 3, maxWaiting: 100, idle: 1 })
  t.equal(started.length, before, 'none for having been made')
  await hashing.hash(PASSWORD)
  t.equal(started.length - before, 1, 'one for one hash')
  t.strictSame(
    await outcomes(times(12, () => hashing.hash(PASSWORD))),
    times(12, () => 'done'),
  )
  t.ok(started.length - before >= 3, 'a burst starts all')
  const threads = started.slice(before)
  for (const thread of threads) thread.ref()
  await Promise.all(threads.map(thread => thread.threadId === -1 || once(thread, 'exit')))
  t.strictSame(await outcomes(times(3, () => hashing.hash(PASSWORD))), ['done', 'done', 'done'])
  t.ok(started.length > before + threads.length, 'and then start anew')
})

t.test('cancelled work is not computed unless it has started', async t => {
  const before = started.length
  const hashing = smallHashing(t)
  const clients = times(3, () => new AbortController())
  const tasks = clients.map(({ signal }) => hashing.hash(PASSWORD, signal))
  const ended = outcomes([...tasks, hashing.hash(PASSWORD)])
  clients[0]?.abort()
  clients[1]?.abort()
  const another = outcomes([hashing.hash(PASSWORD)])
  t.strictSame(await ended, ['overloaded', 'clientClosedRequest', 'done', 'done'])
  t.strictSame(await another, ['done'], 'its place is free at once')
  t.equal(started.length - before, 1, 'and no thread was ended for it')
  t.strictSame(
    await outcomes([
      hashing.hash(PASSWORD, AbortSignal.abort()),
      hashing.hash(PASSWORD, AbortSignal.abort()),
    ]),
    ['clientClosedRequest', 'done'],
    'an aborted hash is computed if a thread is free, and dropped if it has to wait',
  )
})

t.test('waiting work is rejected when the service stops, and starts no thread', async t => {
  const hashing = smallHashing(t)
  const [first, ...waiting] = times(3, () => hashing.hash(PASSWORD))
  const ended = outcomes(waiting)
  const failed = t.rejects(first as Promise<string>, 'what has begun fails')
  await hashing.close()
  t.strictSame(await ended, ['draining', 'draining'])
  await failed
  const before = started.length
  t.strictSame(await outcomes([hashing.hash(PASSWORD)]), ['draining'])
  t.equal(started.length, before)
})

t.test('a thread that cannot start fails only its hashes, with 503, and its reason is logged', async t => {
  const failures: unknown[] = []
  const hashing = smallHashing(t, {}, error => failures.push(error))
  process.env.NODE_OPTIONS = '--import=/does/not/exist.mjs'
  t.teardown(() => delete process.env.NODE_OPTIONS)
  const ended = await outcomes(times(3, () => hashing.hash(PASSWORD)))
  t.strictSame(
    ended,
    times(3, () => 'overloaded'),
  )
  t.match(failures[0], { code: 'ERR_MODULE_NOT_FOUND' })
  delete process.env.NODE_OPTIONS
  t.strictSame(await outcomes([hashing.hash(PASSWORD)]), ['done'], 'the next one tries again')
})

t.test('threads use the compile cache of the process', t => {
  const inThread = "process.stdout.write(String(require('node:module').getCompileCacheDir()))"
  const script = `new (require('node:worker_threads').Worker)(${JSON.stringify(inThread)}, { eval: true })`
  const { NODE_COMPILE_CACHE: _, ...env } = process.env
  const cwd = join(import.meta.dirname, '..', '..')
  const args = ['--import', './src/preload.js', '-e', script]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' })
  t.equal(stderr, '')
  t.ok(stdout.startsWith(join(cwd, 'node_modules', '.cache', 'node')), stdout)
  t.end()
})
