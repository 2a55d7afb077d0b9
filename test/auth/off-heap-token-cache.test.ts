/** The second level of the token cache: records of tokens outside of the heap (docs/design.md, "Hot path"). */
import t, { type Test } from 'tap'
import { newId } from '#base/ids'
import { OffHeapTokenCache } from '#core/auth/off-heap-token-cache'
import { type CachedUser, NEVER, type Principal } from '#core/auth/principal'
import { MAX_RECORD, RecordLog } from '#core/auth/record-log'
import type { TokenRecord } from '#core/auth/token-record'
import { NO_FACTORS } from '#core/users/factors'
import { newFields } from '#core/users/fields'
import { NO_METADATA } from '#core/users/metadata'
import { NO_ROLES } from '#core/users/roles'
import { accountTextOf } from '#core/users/serializers'
import type { User } from '#core/users/user'
import { createRandom } from '../support/random.ts'

const START = 1_700_000_000_000

const newUser = (changes: Partial<User> = {}): User => ({
  id: newId(),
  email: 'ada@example.com',
  ...newFields({ firstName: 'Ada' }),
  emailVerified: false,
  hasPassword: true,
  disabled: false,
  factors: NO_FACTORS,
  createdAt: START,
  updatedAt: START + 1,
  lastRequestAt: START + 2,
  version: 1,
  ...changes,
})

const cachedUserOf = (user: User, accountText: string | null = null): CachedUser => ({
  user,
  key: 7,
  lastRequestAt: user.lastRequestAt ?? NEVER,
  isWriteDue: false,
  current: true,
  tokens: 1,
  accountText,
})

const principalOf = (token: string, cachedUser: CachedUser, changes: Partial<Principal> = {}): Principal => ({
  token,
  cachedUser,
  credentialId: newId(),
  client: null,
  scopes: null,
  impersonatedBy: null,
  amr: ['pwd'],
  ...{
    authenticatedAt: START,
    expiresAt: START + 1_000_000,
    lastRequestAt: START + 3,
    storedRequestAt: START,
  },
  queriedAt: Number.NEGATIVE_INFINITY,
  used: true,
  ...changes,
})

const digits = (value: number): string => String(value).padStart(8, '0')

const clientOf = (id: string | null) => (id === null ? null : { id, current: true })

/** What a principal is created from again. */
const restore = (cache: OffHeapTokenCache, token: string, now = START) => {
  const record = cache.get(token, now)
  if (record === undefined) return undefined
  const user = record.user()
  const cachedUser = { ...cachedUserOf(user, record.accountText), key: record.userKey }
  return {
    principal: record.principal(cachedUser, clientOf(record.clientId), Number.NEGATIVE_INFINITY),
    usedAt: record.usedAt,
  }
}

const sameAfterwards = (t: Test, principal: Principal, title: string): void => {
  const cache = new OffHeapTokenCache(100)
  t.ok(cache.add(principal, 42), title)
  const restored = restore(cache, principal.token)
  const { cachedUser } = principal
  const accountText = cachedUser.accountText ?? accountTextOf(cachedUser.user)
  const expected = { ...principal, cachedUser: { ...cachedUser, accountText }, used: false }
  t.strictSame(restored, { principal: expected, usedAt: 42 }, title)
}

t.test('a principal is restored as it was', t => {
  const plain = newUser()
  const full = newUser({
    firstName: 'Žofie "Z" \\ \n 😀 \ud800',
    lastName: '',
    emailVerified: true,
    roles: ['admin', 'support'],
    locale: 'de-AT',
    userMetadata: { theme: 'dark', tags: ['ä', { deep: null }], ['__proto__']: 1 },
    appMetadata: { plan: 'gold' },
    lastRequestAt: null,
    version: 2 ** 40,
  })
  const accountText = JSON.stringify(plain)
  for (const [title, cachedUser] of Object.entries({
    'a user': cachedUserOf(plain),
    'with the text of the account': cachedUserOf(plain, accountText),
    'with everything': cachedUserOf(full),
    'with everything, and the text': cachedUserOf(full, JSON.stringify(full)),
  })) {
    sameAfterwards(t, principalOf('session'.padEnd(300, 'x'), cachedUser), title)
    const apiKey = {
      scopes: ['account:read', 'users:read'],
      authenticatedAt: 0,
      expiresAt: Number.POSITIVE_INFINITY,
    }
    sameAfterwards(t, principalOf('gh_key_short', cachedUser, apiKey), `${title}: API key`)
    sameAfterwards(
      t,
      principalOf('unrestricted', cachedUser, { scopes: [] }),
      `${title}: API key without scopes`,
    )
    sameAfterwards(
      t,
      principalOf('impersonated', cachedUser, { impersonatedBy: newId() }),
      `${title}: impersonated`,
    )
  }
  const cache = new OffHeapTokenCache(10)
  cache.add(principalOf('token', cachedUserOf({ ...plain, userMetadata: {} })), 0)
  t.equal(restore(cache, 'token')?.principal.cachedUser.user.roles, NO_ROLES, 'constants cost no object')
  t.equal(restore(cache, 'token')?.principal.cachedUser.user.appMetadata, NO_METADATA)
  t.end()
})

t.test('a record keeps what requests change', t => {
  const cache = new OffHeapTokenCache(100)
  const principal = principalOf('token', cachedUserOf(newUser()))
  cache.add(principal, 1)
  const later = { ...principal, lastRequestAt: START + 70_000, storedRequestAt: START + 60_000 }
  const { cachedUser } = later
  cache
    .get('token', START)
    ?.setLastRequest({ ...later, cachedUser: { ...cachedUser, lastRequestAt: START + 80_000 } }, 9)
  const restored = restore(cache, 'token')
  t.match(restored, {
    principal: { lastRequestAt: START + 70_000, storedRequestAt: START + 60_000 },
    usedAt: 9,
  })
  t.equal(restored?.principal.cachedUser.lastRequestAt, START + 80_000)
  t.equal(restored?.principal.cachedUser.user.lastRequestAt, START + 80_000)
  t.end()
})

t.test('only the exact token is found', t => {
  const cache = new OffHeapTokenCache(100)
  const signature = 'bdQaJRblEnSxDl_rs3LEaT3KwDNubLCYPe9juchbJQM'
  const token = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.${signature}`
  cache.add(principalOf(token, cachedUserOf(newUser())), 0)
  const wrong = [
    // Each ends with the characters that the key is made of.
    `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJib2IifQ.${signature}`,
    `${token.slice(0, 5)}X${token.slice(6)}`,
    token.slice(1),
    ` ${token}`,
    signature,
    signature.slice(-8),
    `${token.slice(0, 30)}${String.fromCharCode(token.charCodeAt(30) + 0x100)}${token.slice(31)}`,
    // Another key.
    token.slice(0, -1),
    `${token} `,
    '',
  ]
  for (const attempt of wrong) t.equal(cache.get(attempt, START), undefined, attempt)
  t.ok(cache.get(token, START))
  t.equal(cache.size, 1, 'attempts remove nothing')
  t.notOk(
    cache.add(principalOf('ž'.padEnd(300, 'x'), cachedUserOf(newUser())), 0),
    'no token has such characters',
  )
  t.end()
})

t.test('S2: of two tokens with the same key the later replaces the earlier', t => {
  const cache = new OffHeapTokenCache(100)
  const [one, two] = ['first 12345678', 'second 12345678']
  for (const token of [one, two]) cache.add(principalOf(token, cachedUserOf(newUser())), 0)
  t.equal(cache.get(one, START), undefined)
  t.equal(cache.get(two, START)?.token, two)
  t.same([cache.size, cache.evictions], [1, 1])
  t.end()
})

t.test('a change of a user invalidates all of their tokens, and hardly any other', t => {
  const cache = new OffHeapTokenCache(10_000)
  const users = Array.from({ length: 1_000 }, () => newUser())
  const tokensOf = (index: number) => [`token ${digits(index)}`, `token ${digits(index + 1_000)}`]
  const add = (index: number): void => {
    for (const token of tokensOf(index)) cache.add(principalOf(token, cachedUserOf(users[index] as User)), 0)
  }
  for (const index of users.keys()) add(index)
  const found = () =>
    users.keys().map(index => tokensOf(index).filter(token => cache.get(token, START)).length)
  t.ok([...found()].every(count => count === 2))
  const changed = users
    .keys()
    .filter(index => index % 100 === 0)
    .toArray()
  for (const index of changed) cache.invalidate((users[index] as User).id)
  for (const index of changed)
    t.strictSame(
      tokensOf(index).map(token => cache.get(token, START)),
      [undefined, undefined],
    )
  const left = [...found()].reduce((sum, count) => sum + count)
  t.ok(left <= 1_980 && left >= 1_960, `${left} of 1,980 tokens of other users are left`)
  t.equal(cache.size, left, 'the others are removed')
  add(0)
  t.strictSame(
    tokensOf(0).map(token => cache.get(token, START)?.token),
    tokensOf(0),
    'what is added later is current',
  )
  cache.invalidate('ada')
  t.end()
})

t.test('a clock that is set back empties it', t => {
  const cache = new OffHeapTokenCache(100)
  cache.add(principalOf('token', cachedUserOf(newUser())), 0)
  t.ok(cache.get('token', START))
  t.ok(cache.get('token', START + 1))
  t.equal(cache.get('token', START), undefined)
  t.equal(cache.size, 0)
  t.end()
})

t.test('the oldest records make room, whatever users write into theirs', t => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  const { next } = createRandom(seed)
  const random = (below: number): number => Math.floor(next() * below)
  for (const capacity of [1, 17, 300]) {
    const cache = new OffHeapTokenCache(capacity)
    const model = new Map<string, Principal>()
    let [added, removed, found] = [0, 0, 0]
    for (let step = 0; step < 12_000; step += 1) {
      const token = `token ${digits(random(capacity * 3))}`
      const expected = model.get(token)
      const restored = restore(cache, token)?.principal
      if (restored === undefined) {
        model.delete(token)
        // Bytes that look like other records, at every offset.
        const text = 'token 00000001\0\0\0\0\0\0\0\0'.repeat(random(60)).slice(random(8))
        const principal = principalOf(token, cachedUserOf(newUser({ version: step, userMetadata: { text } })))
        if (!cache.add(principal, step)) t.fail('it fits')
        model.set(token, principal)
        added += 1
      } else {
        const { version, userMetadata } = restored.cachedUser.user
        const { user } = (expected as Principal).cachedUser
        if (version !== user.version || JSON.stringify(userMetadata) !== JSON.stringify(user.userMetadata))
          t.fail(`${token} SEED=${seed}`)
        found += 1
        if (random(20) === 0) {
          cache.remove(cache.get(token, START) as TokenRecord)
          model.delete(token)
          removed += 1
        }
      }
      if (step % 4_000 === 3_999) {
        cache.clear()
        removed += cache.size
        t.equal(cache.get(token, START), undefined, 'nothing is left')
        model.clear()
        removed = added - cache.evictions
      }
      if (cache.size > capacity) t.fail(`${cache.size} of ${capacity}`)
    }
    t.ok(found > 100 && cache.evictions > 100, `${capacity}: ${found} found, ${cache.evictions} evicted`)
    t.equal(cache.size, added - removed - cache.evictions)
  }
  t.end()
})

t.test('a token of the first level is not counted twice', t => {
  const cache = new OffHeapTokenCache(100)
  const principals = Array.from({ length: 100 }, (_, index) =>
    principalOf(`token ${digits(index)}`, cachedUserOf(newUser())),
  )
  for (const principal of principals) cache.add(principal, 0)
  const record = (index: number) => cache.get(`token ${digits(index)}`, START) as TokenRecord
  for (const index of [7, 7, 8, 9]) record(index).isHot = true
  t.equal(cache.size, 97)
  cache.add({ ...(principals[7] as Principal), lastRequestAt: START + 9 }, 5)
  t.equal(cache.size, 98, 'evicted by the first level')
  t.match(restore(cache, 'token 00000007'), { principal: { lastRequestAt: START + 9 }, usedAt: 5 })
  cache.remove(record(8))
  t.equal(cache.size, 98)
  cache.add(principalOf('other 00000009', cachedUserOf(newUser())), 0)
  t.same([cache.size, cache.evictions], [99, 0], 'the key of a token in the first level')
  for (let index = 20; index < 100; index += 1) record(index).isHot = true
  for (let index = 100; index < 1_000; index += 1)
    cache.add(principalOf(`token ${digits(index)}`, cachedUserOf(newUser())), 0)
  t.same([cache.size + cache.evictions], [19 + 900], 'overwritten')
  t.end()
})

t.test('large records are not kept, and a cache without capacity keeps none', t => {
  const cache = new OffHeapTokenCache(100)
  const withText = (length: number) => cachedUserOf(newUser({ userMetadata: { text: 'x'.repeat(length) } }))
  t.notOk(cache.add(principalOf('token', withText(MAX_RECORD)), 0))
  t.notOk(
    cache.add(principalOf('token', cachedUserOf(newUser({ firstName: 'ž'.repeat(MAX_RECORD / 2) }))), 0),
  )
  t.ok(cache.add(principalOf('token', withText(MAX_RECORD - 1_000)), 0))
  t.equal(cache.size, 1)
  const none = new OffHeapTokenCache(0)
  t.notOk(none.add(principalOf('token', withText(1)), 0))
  t.notOk(none.hasRoom)
  t.equal(none.get('token', START), undefined)
  none.invalidate('ada')
  none.clear()
  t.end()
})

t.test('as long as there is room, nothing is evicted', t => {
  const cache = new OffHeapTokenCache(5_000)
  let added = 0
  for (; cache.hasRoom; added += 1)
    cache.add(principalOf(`token ${digits(added)}`, cachedUserOf(newUser())), 0)
  t.equal(added, 5_000)
  t.ok(cache.evictions < 10, `${cache.evictions} by full buckets of the index`)
  const large = new OffHeapTokenCache(5_000)
  for (added = 0; large.hasRoom; added += 1)
    large.add(
      principalOf(
        `token ${digits(added)}`,
        cachedUserOf(newUser({ userMetadata: { text: 'x'.repeat(4_000) } })),
      ),
      0,
    )
  t.ok(added < 1_500 && large.evictions === 0, `metadata takes room: ${added}`)
  t.end()
})

t.test('a log grows as it is filled, and gives up its oldest segment', t => {
  const before = process.memoryUsage().arrayBuffers
  const log = new RecordLog(64 * 2 ** 20)
  t.ok(process.memoryUsage().arrayBuffers - before < 2 ** 20, 'an empty log takes no memory')
  t.notOk(log.has(0))
  const positions = Array.from({ length: 100_000 }, () => log.append(1_001))
  t.strictSame(
    positions,
    positions.toSorted((one, other) => one - other),
    'positions increase',
  )
  t.ok(positions.every(position => log.offsetOf(position) % 8 === 0))
  t.equal(log.records + log.overwritten, 100_000)
  t.ok(log.records > 63_000 && log.records * 1_008 <= 64 * 2 ** 20, `${log.records}`)
  t.equal(positions.filter(position => log.has(position)).length, log.records)
  const { records } = log
  log.removeOldest()
  t.ok(log.records < records && log.hasRoom)
  while (log.records > 0) log.removeOldest()
  t.notOk(log.has(positions.at(-1) as number))
  t.ok(log.has(log.append(8)), 'it can be filled again')
  t.end()
})
