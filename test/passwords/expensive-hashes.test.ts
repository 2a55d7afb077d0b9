/**
 * Hashes are queued by cost: an imported hash that costs more than ours delays only its own account (docs/design.md, "Tokens and
 * sessions").
 */
import { hashSync } from '@node-rs/argon2'
import bcrypt from 'bcryptjs'
import t from 'tap'
import { relativeCost } from '#core/passwords/formats'
import { hasherLimits } from '#core/passwords/hasher'
import { dummyHash } from '#core/passwords/our-hash'
import { outcomes, smallHashing, times } from '../support/hashing-threads.ts'
import { scryptPhc } from '../support/scrypt-phc.ts'

const PASSWORD = 'a pass phrase'
const TAIL = '$c29tZXNhbHRzb21lc2FsdA$c29tZXNhbHRzb21lc2FsdA'

/** About a second of work, of no known password. Plain JavaScript, so its thread ends at once with the test. */
const mostExpensive = (account: number): string =>
  `$2b$14$${'CCCCCCCCCCCCCCCCCCCC'}${account}.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW`

/** Some fifty milliseconds of work. */
const expensive = (): string => bcrypt.hashSync(PASSWORD, 10)

t.test('the cost of a hash is estimated from its parameters, relative to a standard hash', t => {
  for (const [encoded, least, most] of [
    [dummyHash(), 1, 1],
    [`$argon2id$v=19$m=12288,t=3,p=1${TAIL}`, 0.9, 1],
    [`$argon2id$v=19$m=19457,t=2,p=1${TAIL}`, 1.00001, 1.1],
    [`$argon2i$v=19$m=65536,t=3,p=4${TAIL}`, 4, 6],
    [`$argon2id$v=19$m=262144,t=16,p=16${TAIL}`, 100, 200],
    ['$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 0.2, 0.8],
    ['$2b$10$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW', 5, 20],
    [mostExpensive(0), 100, 300],
    [`$scrypt$ln=10,r=8,p=1${TAIL}`, 0.1, 0.5],
    [`$scrypt$ln=14,r=8,p=1${TAIL}`, 2, 6],
    [`$scrypt$ln=14,r=8,p=5${TAIL}`, 10, 30],
    [`$scrypt$ln=18,r=8,p=4${TAIL}`, 100, 400],
    ['of no kind', 0, 0],
    [`$2b$15$${'C'.repeat(53)}`, 0, 0],
  ] as const) {
    const cost = relativeCost(encoded)
    t.ok(cost >= least && cost <= most, `${encoded.slice(0, 40)}: ${cost}`)
  }
  t.end()
})

t.test('standard hashes run while the expensive lane is full', async t => {
  const hashing = smallHashing(t)
  const ended: string[] = []
  const slow = [0, 1, 2].map(account =>
    hashing.verify(PASSWORD, mostExpensive(account)).then(
      () => ended.push('expensive'),
      () => ended.push('closed'),
    ),
  )
  const encoded = hashSync(PASSWORD)
  for (let round = 0; round < 5; round += 1) {
    t.equal(await hashing.verify(PASSWORD, encoded), true)
    t.equal(await hashing.verify(PASSWORD, null), false)
    await hashing.hash(PASSWORD)
    ended.push('ordinary')
  }
  t.strictSame(
    ended,
    times(5, () => 'ordinary'),
  )
  t.strictSame(
    await outcomes([hashing.verify(PASSWORD, mostExpensive(3))]),
    ['overloaded'],
    'accounts with an expensive hash are rejected past the bound of their lane',
  )
  t.strictSame(await outcomes([hashing.verify(PASSWORD, encoded)]), ['done'], 'and no other account')
  await hashing.close()
  await Promise.all(slow)
})

t.test('accounts with expensive hashes take turns, and each has few places in the queue', async t => {
  const hashing = smallHashing(t)
  const [attacked, other] = [expensive(), expensive()]
  const ended: string[] = []
  const signIn = (name: string, encoded: string, password: string) =>
    hashing.verify(password, encoded).then(
      matches => ended.push(`${name} ${matches}`),
      ({ code }) => ended.push(`${name} ${code}`),
    )
  const attempts = times(6, () => signIn('attacked', attacked, 'a guess'))
  await Promise.all([...attempts, signIn('other', other, PASSWORD)])
  t.strictSame(ended, [
    ...times(3, () => 'attacked overloaded'),
    'attacked false',
    'other true',
    'attacked false',
    'attacked false',
  ])
  t.equal(await hashing.verify(PASSWORD, attacked), true, 'and it goes on')
})

t.test('a cancelled hash frees its place in the queue of the account', async t => {
  const hashing = smallHashing(t)
  const encoded = expensive()
  const clients = times(3, () => new AbortController())
  const tasks = clients.map(({ signal }) => hashing.verify(PASSWORD, encoded, signal))
  const ended = outcomes(tasks)
  clients[1]?.abort()
  const another = outcomes([hashing.verify(PASSWORD, encoded)])
  t.strictSame(await ended, ['clientClosedRequest', 'done', 'done'])
  t.strictSame(await another, ['done'])
})

t.test('waiting hashes are rejected in both lanes when the service stops', async t => {
  const hashing = smallHashing(t)
  const encoded = expensive()
  const running = hashing.verify(PASSWORD, encoded)
  const failed = t.rejects(running, 'what has begun fails')
  const waiting = outcomes([
    hashing.verify(PASSWORD, encoded),
    hashing.verify(PASSWORD, expensive()),
    hashing.verify(PASSWORD, expensive()),
  ])
  await hashing.close()
  t.strictSame(
    await waiting,
    times(3, () => 'draining'),
  )
  await failed
  t.strictSame(await outcomes([hashing.verify(PASSWORD, encoded)]), ['draining'])
})

t.test('scrypt and argon2 use the expensive lane too', async t => {
  const argon2 = hashSync(PASSWORD, { memoryCost: 32_768, timeCost: 3 })
  const scrypt = scryptPhc(PASSWORD, Buffer.alloc(16, 7), 13, 8, 1)
  const [busy, free] = [smallHashing(t), smallHashing(t)]
  const filling = outcomes([0, 1, 2].map(account => busy.verify(PASSWORD, mostExpensive(account))))
  for (const encoded of [argon2, scrypt]) {
    t.strictSame(await outcomes([busy.verify(PASSWORD, encoded)]), ['overloaded'], encoded.slice(0, 10))
    t.equal(await free.verify(PASSWORD, encoded), true)
  }
  await busy.close()
  await filling
})

t.test('memory is bounded: one thread for expensive hashes per four others', t => {
  for (const processes of [1, 2, 64]) {
    const { threads, expensive: lane } = hasherLimits(processes)
    t.equal(lane.threads, Math.max(1, Math.floor(threads / 4)))
  }
  t.end()
})
