/**
 * The hasher (docs/design.md, "Contract" and "Tokens and sessions"). Threads: hashing-threads.test.ts. Requests: hashing-requests.test.ts.
 */
import { createRequire } from 'node:module'
import { hashSync, parseOptions, verifySync } from '@node-rs/argon2'
import t from 'tap'
import { dummyHash, isWeak } from '#core/passwords/our-hash'
import { isCommon } from '#core/passwords/policy'
import { outcomes, smallHashing, times } from '../support/hashing-threads.ts'

const PASSWORD = 'a pass phrase'

t.test('a full queue rejects with `overloaded` at once', async t => {
  const hashing = smallHashing(t)
  const encoded = hashSync(PASSWORD)
  const kinds: Record<string, () => Promise<unknown>> = {
    'hash, before there is a thread': () => hashing.hash(PASSWORD),
    hash: () => hashing.hash(PASSWORD),
    'right password': () => hashing.verify(PASSWORD, encoded),
    'wrong password': () => hashing.verify('another', encoded),
    // Rejected as often as the others: it costs the same.
    'no account': () => hashing.verify(PASSWORD, null),
  }
  for (const [name, task] of Object.entries(kinds)) {
    t.strictSame(
      await outcomes(times(12, task)),
      [...times(9, () => 'overloaded'), 'done', 'done', 'done'],
      `${name}: one runs, two wait, the others are rejected before any is done`,
    )
  }
  t.equal(await hashing.verify(PASSWORD, encoded), true, 'and it goes on')
  const overloaded = (await Promise.allSettled(times(12, () => hashing.hash(PASSWORD)))).find(
    ({ status }) => status === 'rejected',
  )
  t.match(overloaded, { reason: { status: 503, headers: { 'retry-after': /^\d+$/ } } })
})

t.test('a request is refused before it hashes exactly while the queue is full', async t => {
  const hashing = smallHashing(t)
  const refusals: (string | undefined)[] = []
  const ended = outcomes(
    times(4, () => {
      refusals.push(hashing.refusal()?.code)
      return hashing.hash(PASSWORD)
    }),
  )
  t.strictSame(refusals, [undefined, undefined, undefined, 'overloaded'], 'one runs and two wait')
  t.match(hashing.refusal(), { status: 503, headers: { 'retry-after': /^\d+$/ } })
  t.equal(hashing.statistics.ordinary.rejected, 2, 'refusals count as rejected hashes')
  t.strictSame(await ended, ['overloaded', 'done', 'done', 'done'])
  t.equal(hashing.statistics.ordinary.rejected, 3, 'and so does the hash that did not ask')
  t.equal(hashing.refusal(), null)
})

t.test('a password matches only its own hash', async t => {
  const hashing = smallHashing(t)
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

t.test('hashes weaker than m = 19 MiB, t = 2, p = 1 match and need a rehash', async t => {
  const hashing = smallHashing(t)
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

t.test('an unknown account is compared with a standard dummy hash', async t => {
  const [real, unknown] = [await smallHashing(t).hash(PASSWORD), dummyHash()]
  t.strictSame(parseOptions(unknown), parseOptions(real), 'the same parameters')
  const lengths = (encoded: string) => encoded.split('$').map(part => part.length)
  t.strictSame(lengths(unknown), lengths(real))
  t.equal(verifySync(unknown, PASSWORD), false, 'well-formed, and of no password')
  t.not(dummyHash(), unknown)
})

t.test('only long common passwords stay in memory', t => {
  t.equal(isCommon('password1'), true)
  t.equal(isCommon('four hens crossed the moat'), false)
  const loaded = Object.keys(createRequire(import.meta.url).cache)
  t.strictSame(
    loaded.filter(file => file.includes('zxcvbn')),
    [],
  )
  t.end()
})
