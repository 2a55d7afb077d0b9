/** Hashing by itself, on real threads (DESIGN §4, §5); what clients see of it: hashing-clients.test.ts. */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { Worker } from 'node:worker_threads'
import { hashSync, parseOptions, verifySync } from '@node-rs/argon2'
import t from 'tap'
import { isCommon } from '../src/auth/common-passwords.ts'
import { hashOfNobody, isWeak } from '../src/auth/hash-parameters.ts'
import { type HashingLimits, PasswordHashing } from '../src/auth/password-hashing.ts'
import { ServiceError } from '../src/errors.ts'
import type { Context } from './support/build.ts'

const PASSWORD = 'a pass phrase'

/** Threads in the order in which they started. */
const started: Worker[] = []
process.on('worker', worker => started.push(worker))

const small = (
  t: Context,
  limits: Partial<HashingLimits> = {},
  onFailure = (error: unknown): void => {
    throw error
  },
): PasswordHashing => {
  const hashing = new PasswordHashing(onFailure, { threads: 1, maxWaiting: 2, idle: 60_000, ...limits })
  t.teardown(() => hashing.close())
  return hashing
}

/** Starts all at once. @returns what came of them, in the order in which they ended. */
const outcomes = async (tasks: Promise<unknown>[]): Promise<string[]> => {
  const ended: string[] = []
  const note = (error: unknown): number =>
    ended.push(error instanceof ServiceError ? error.code : `unexpected ${error}`)
  await Promise.all(tasks.map(task => task.then(() => ended.push('done'), note)))
  return ended
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)

t.test('past the bound of the queue the answer is `overloaded` at once (DESIGN §5)', async t => {
  const hashing = small(t)
  const encoded = hashSync(PASSWORD)
  const kinds: Record<string, () => Promise<unknown>> = {
    'hash, before there is a thread': () => hashing.hash(PASSWORD),
    hash: () => hashing.hash(PASSWORD),
    'right password': () => hashing.verify(PASSWORD, encoded),
    'wrong password': () => hashing.verify('another', encoded),
    // Refused as often as the others: it costs a hash as they do.
    'no account': () => hashing.verify(PASSWORD, null),
  }
  for (const [name, task] of Object.entries(kinds)) {
    t.strictSame(
      await outcomes(times(12, task)),
      [...times(9, () => 'overloaded'), 'done', 'done', 'done'],
      `${name}: one works, two wait, the others are told before any of them is done`,
    )
  }
  t.equal(await hashing.verify(PASSWORD, encoded), true, 'and it goes on')
  const overloaded = (await Promise.allSettled(times(12, () => hashing.hash(PASSWORD)))).find(
    ({ status }) => status === 'rejected',
  )
  t.match(overloaded, { reason: { status: 503, headers: { 'retry-after': /^\d+$/ } } })
})

t.test('a password verifies against its own hash alone (DESIGN §4, §5)', async t => {
  const hashing = small(t)
  const long = `${'x'.repeat(127)}y`
  const encoded = await hashing.hash(long)
  t.match(encoded, /^\$argon2id\$v=19\$/)
  t.equal(await hashing.verify(long, encoded), true)
  t.equal(await hashing.verify(`${'x'.repeat(127)}z`, encoded), false, 'the last character counts')
  t.equal(await hashing.verify(long.slice(0, -1), encoded), false)
  t.equal(await hashing.verify(long, null), false, 'no account')
  t.equal(await hashing.verify('', null), false)
  t.not(await hashing.hash(long), encoded, 'every hash has a salt of its own')
  const nul = await hashing.hash('a pass\u0000phrase')
  t.equal(await hashing.verify('a pass\u0000phrase', nul), true)
  t.equal(await hashing.verify('a pass\u0000', nul), false, 'not cut at NUL')
})

t.test('hashes weaker than m = 19 MiB, t = 2, p = 1 are reported, and verify (DESIGN §4)', async t => {
  const hashing = small(t)
  const made = (memoryCost: number, timeCost: number) =>
    hashSync(PASSWORD, { memoryCost, timeCost, parallelism: 1 })
  const weak = [made(8_192, 2), made(19_455, 2), made(19_456, 1), made(65_536, 1)]
  for (const encoded of weak) {
    t.equal(isWeak(encoded), true, encoded.slice(0, 32))
    t.equal(await hashing.verify(PASSWORD, encoded), true)
  }
  for (const encoded of [await hashing.hash(PASSWORD), made(19_456, 2), made(19_456, 3), made(32_768, 2)]) {
    t.equal(isWeak(encoded), false, encoded.slice(0, 32))
  }
})

t.test('without an account, the comparison is with a hash like any other (DESIGN §5)', async t => {
  const [real, nobody] = [await small(t).hash(PASSWORD), hashOfNobody()]
  t.strictSame(parseOptions(nobody), parseOptions(real), 'the same parameters')
  const lengths = (encoded: string) => encoded.split('$').map(part => part.length)
  t.strictSame(lengths(nobody), lengths(real))
  t.equal(verifySync(nobody, PASSWORD), false, 'well-formed, and of no password')
  t.not(hashOfNobody(), nobody)
})

t.test('threads start when there is work, and end when there has been none', async t => {
  const before = started.length
  const hashing = small(t, { threads: 3, maxWaiting: 100, idle: 1 })
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

t.test('what nobody waits for any more is not computed, unless it has begun', async t => {
  const before = started.length
  const hashing = small(t)
  const clients = times(3, () => new AbortController())
  const tasks = clients.map(({ signal }) => hashing.hash(PASSWORD, signal))
  const ended = outcomes([...tasks, hashing.hash(PASSWORD)])
  clients[0]?.abort()
  clients[1]?.abort()
  const another = outcomes([hashing.hash(PASSWORD)])
  t.strictSame(await ended, ['overloaded', 'clientGone', 'done', 'done'])
  t.strictSame(await another, ['done'], 'its place is free at once')
  t.equal(started.length - before, 1, 'and no thread was ended for it')
  t.strictSame(await outcomes([hashing.hash(PASSWORD, AbortSignal.abort())]), ['clientGone'])
})

t.test('what waits when the service stops is refused, and starts no thread', async t => {
  const hashing = small(t)
  const [first, ...waiting] = times(3, () => hashing.hash(PASSWORD))
  const ended = outcomes(waiting)
  const failed = t.rejects(first as Promise<string>, 'what has begun fails')
  await hashing.close()
  t.strictSame(await ended, ['draining', 'draining'])
  await failed
  const before = started.length
  t.strictSame(await outcomes([hashing.hash(PASSWORD)]), ['overloaded'])
  t.equal(started.length, before)
})

t.test('a thread that cannot start fails its hashes alone, and its reason is told', async t => {
  const failures: unknown[] = []
  const hashing = small(t, {}, error => failures.push(error))
  process.env.NODE_OPTIONS = '--import=/does/not/exist.mjs'
  t.teardown(() => delete process.env.NODE_OPTIONS)
  const ended = await outcomes(times(3, () => hashing.hash(PASSWORD)))
  t.match(
    ended,
    times(3, () => /^unexpected/),
  )
  t.match(failures[0], { code: 'ERR_MODULE_NOT_FOUND' })
  delete process.env.NODE_OPTIONS
  t.strictSame(await outcomes([hashing.hash(PASSWORD)]), ['done'], 'the next one tries again')
})

t.test('of the list of common passwords nothing stays but the long ones', t => {
  t.equal(isCommon('password1'), true)
  t.equal(isCommon('four hens crossed the moat'), false)
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  t.strictSame(
    loaded.filter(file => file.includes('zxcvbn')),
    [],
  )
  t.end()
})
