/**
 * Every comparison takes as long as one with our hashes (docs/design.md, "Tokens and sessions"). Time is counted in work here, not
 * measured.
 */
import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import t from 'tap'
import { relativeCost } from '#core/passwords/formats'
import { dummyHash, HASH_PARAMETERS } from '#core/passwords/our-hash'
import { Padding, paddingFor } from '#core/passwords/padding'
import { scryptPhc } from '../support/scrypt-phc.ts'

const PASSWORD = 'a pass phrase'
const OURS = dummyHash()
const IMPORTED = '$argon2id$v=19$m=4096,t=3,p=1$c29tZXNhbHRzb21lc2FsdA$c29tZXNhbHRzb21lc2FsdA'

/** A thread of a machine on which one of our hashes takes `speed` milliseconds. */
const machine = () => {
  let clock = 0
  const state = { speed: 10 }
  const work = (cost: number): void => {
    clock += cost * state.speed
  }
  const padding = new Padding({
    now: () => clock,
    hash: ({ memoryCost, timeCost }) => work((memoryCost * timeCost) / (19_456 * 2)),
  })
  return {
    state,
    /** @param cost of the comparison; `null`: there is nothing to compare with. @returns what it takes, in units of our hashes. */
    verify(encoded: string, cost: number | null, matches = false): number {
      const begin = clock
      const result = padding.run(encoded, () => {
        work(cost ?? 0)
        return cost === null ? null : matches
      })
      t.equal(result, matches)
      return Math.round(((clock - begin) / state.speed) * 100) / 100
    },
  }
}

t.test('a padding of each share is an argon2 hash of that cost, or none', t => {
  for (let share = 0.01; share <= 1; share += 0.01) {
    const padding = paddingFor(share)
    t.ok(padding)
    const cost = relativeCost(hashSync('', padding ?? {}))
    t.ok(Math.abs(cost - share) < 0.001, `${share}: ${cost}`)
  }
  t.strictSame(paddingFor(1), HASH_PARAMETERS)
  for (const share of [0.0003, 0, -0.5, Number.NEGATIVE_INFINITY]) t.equal(paddingFor(share), null)
  t.end()
})

t.test('a comparison that costs less is as much work as one with our hashes', t => {
  const { verify } = machine()
  t.equal(verify(IMPORTED, 0.2), 2, 'the first of a thread measures one of our hashes')
  for (const cost of [0, 0.01, 0.1, 0.2, 0.5, 0.9, 0.99])
    for (const matches of [false, true]) t.equal(verify(IMPORTED, cost, matches), 1, `${cost} ${matches}`)
  t.equal(verify(IMPORTED, null), 1, 'a stored hash that is not accepted any more')
  t.end()
})

t.test('nothing is added to one of our hashes, or to one that costs more', t => {
  const { verify } = machine()
  t.equal(verify(OURS, 1), 2, 'the first of a thread takes as long for every account')
  for (const cost of [1, 0.6, 1.4]) t.equal(verify(OURS, cost), cost, 'some are faster or slower than others')
  for (const cost of [1.2, 400]) t.equal(verify(IMPORTED, cost), cost)
  t.end()
})

t.test('the padding follows the machine, not single hashes', t => {
  const { state, verify } = machine()
  verify(OURS, 1)
  verify(OURS, 50)
  t.ok(verify(IMPORTED, 0.2) < 1.02, 'one that has waited for a core')
  for (let round = 0; round < 50; round += 1) verify(OURS, 1)
  state.speed = 30
  for (let round = 0; round < 50; round += 1) verify(OURS, 1)
  // 3 of 30 milliseconds, which were 3 of 10.
  const taken = verify(IMPORTED, 0.1)
  t.ok(taken > 0.98 && taken < 1.02, `${taken}`)
  for (let round = 0; round < 50; round += 1) verify(OURS, null)
  t.equal(verify(IMPORTED, 0.1), taken, 'a malformed hash with our parameters measures nothing')
  t.end()
})

t.test('the thread adds it to every comparison but that with our hashes', async t => {
  const library = await import('@node-rs/argon2')
  let added = 0
  const { verify } = await t.mockImport<typeof import('#core/passwords/hashing-thread')>(
    '../../src/core/passwords/hashing-thread.ts',
    {
      '@node-rs/argon2': {
        ...library,
        hashSync: (...args: Parameters<typeof hashSync>) => {
          added += 1
          return library.hashSync(...args)
        },
      },
    },
  )
  /** @returns whether any of some comparisons added work: one alone may have waited for a core. */
  const adds = (passwords: readonly string[], encoded: string): boolean => {
    const before = added
    for (let attempt = 0; attempt < 5; attempt += 1) verify({ passwords, encoded })
    return added > before
  }
  adds([PASSWORD], OURS)
  t.equal(adds([PASSWORD], OURS), false)
  t.equal(adds([PASSWORD], hashSync(PASSWORD)), false)
  const cheap = hashSync(PASSWORD, { memoryCost: 8, timeCost: 1, parallelism: 1 })
  for (const encoded of [
    cheap,
    bcrypt.hashSync(PASSWORD, 4),
    scryptPhc(PASSWORD, Buffer.alloc(16), 4, 8, 1),
    'malformed',
  ])
    for (const password of [PASSWORD, 'a guess']) t.equal(adds([password], encoded), true, encoded)
  added = 0
  verify({ passwords: ['e\u0301', 'é'], encoded: 'malformed' })
  t.equal(added, 2, 'for each form of the password')
})
