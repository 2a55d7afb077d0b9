/**
 * Authenticator against a model: random requests, changes and revocations, with a slow store (docs/design.md, "Tokens and sessions" and
 * "Storage").
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { Principal } from '#core/auth/principal'
import type { User } from '#core/users/user'
import { settle, setUp, type TestCredential } from '../support/authenticator.ts'
import { createRandom } from '../support/random.ts'

interface Run {
  /** Whether the store responds asynchronously, as over a network. */
  readonly later: boolean
  readonly operations: number
  readonly tokens: number
  readonly users: number
  readonly capacity: number
  /** Of the first level of the cache. */
  readonly hotCapacity: number
}

const RUNS: readonly Run[] = [
  { later: false, operations: 60_000, tokens: 2_000, users: 500, capacity: 150, hotCapacity: 150 },
  { later: true, operations: 40_000, tokens: 2_000, users: 500, capacity: 150, hotCapacity: 150 },
  // Most requests restore a principal from its record.
  { later: false, operations: 60_000, tokens: 2_000, users: 500, capacity: 400, hotCapacity: 10 },
  { later: true, operations: 40_000, tokens: 2_000, users: 500, capacity: 400, hotCapacity: 10 },
  { later: false, operations: 60_000, tokens: 2_000, users: 500, capacity: 3_000, hotCapacity: 1 },
  // As in production: half of the tokens in use are cached.
  {
    later: false,
    operations: 250_000,
    tokens: 20_000,
    users: 6_000,
    capacity: 10_000,
    hotCapacity: 1_000,
  },
]

/** Maximum number of lookups in flight. */
const WAITING = 8

interface Count {
  /** Another user's principal, an outdated one, or null for a valid token. */
  wrong: number
  /** A principal for an ended session or a revoked API key. */
  late: number
  rejected: number
  right: number
  /** A principal for a token that was not issued. */
  forged: number
}

/** Whether a principal has the stored user. A request changes the last request of a user in memory. */
const isSame = (user: User | undefined, stored: User | undefined): boolean =>
  user === stored || isDeepStrictEqual(user && { ...user, lastRequestAt: stored?.lastRequestAt }, stored)

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)

for (const { later, operations, tokens, users, capacity, hotCapacity } of RUNS) {
  const when = later ? 'later, in any order' : 'at once'
  const what = `${operations} operations over ${tokens} tokens, ${capacity} cached, ${hotCapacity} on the heap`
  t.test(`${what} agree with the model, store responds ${when}: SEED=${seed}`, async t => {
    const { next } = createRandom(seed)
    const random = (below: number): number => Math.floor(next() * below)
    const { store, authenticator, lastRequests, addCredential, change } = setUp(capacity, hotCapacity)
    store.later = later
    const issued = new Set<string>()
    const add = (index: number): TestCredential => {
      const credential = addCredential(index % 3 === 0 ? 'apiKey' : 'session', `user ${index % users}`)
      issued.add(credential.token)
      return credential
    }
    const all = Array.from({ length: tokens }, (_, index) => add(index))
    /** A tenth of the tokens makes most requests, so that there are hits and misses. */
    const someIndex = (): number => (random(4) === 0 ? random(tokens) : random(tokens / 10))
    const some = (): TestCredential => {
      const found = all[someIndex()]
      if (found === undefined) throw new Error('no such token')
      return found
    }
    const count: Count = { wrong: 0, late: 0, rejected: 0, right: 0, forged: 0 }

    /** Compares with the current state: the result must include every change during the lookup. */
    const check = (credential: TestCredential, principal: Principal | null): void => {
      const user = store.users.get(credential.userId)
      const alive = credential.exists() && user?.disabled === false
      if (principal === null) count[alive ? 'wrong' : 'rejected'] += 1
      else if (!alive) count.late += 1
      else if (principal.credentialId !== credential.id || !isSame(principal.cachedUser.user, user))
        count.wrong += 1
      else count.right += 1
    }

    const responded: { credential: TestCredential; principal: Principal | null }[] = []
    const checkAll = (): void => {
      for (const { credential, principal } of responded.splice(0)) check(credential, principal)
    }
    const tamper = (token: string): string => {
      const at = random(token.length)
      return `${token.slice(0, at)}${token[at] === 'x' ? 'y' : 'x'}${token.slice(at + 1)}`
    }
    const attack = (): void => {
      // A changed character, and the start of one token with the end of another, by which the cache finds tokens.
      const attempts = [tamper(some().token), `${some().token.slice(0, -8)}${some().token.slice(-8)}`]
      for (const token of attempts) {
        if (issued.has(token)) continue
        const principal = authenticator.authenticate(token)
        const note = (found: Principal | null): void => {
          if (found !== null) count.forged += 1
        }
        if (principal instanceof Promise) void principal.then(note)
        else note(principal)
      }
    }
    const authenticate = (): void => {
      const credential = some()
      const principal = authenticator.authenticate(credential.token)
      if (principal instanceof Promise)
        void principal.then(principal => responded.push({ credential, principal }))
      else check(credential, principal)
    }
    const release = async (): Promise<void> => {
      const [pick] = store.waiting.splice(random(store.waiting.length || 1), 1)
      pick?.(random(2) === 0)
      for (let turn = 0; turn < 6; turn += 1) await null
      checkAll()
    }
    let versions = 0
    const alter = (): void => {
      const credential = some()
      const { userId } = credential
      versions += 1
      const kind = random(10)
      if (kind < 2) credential.revoke()
      else if (kind < 3) change(userId, { disabled: true })
      else if (kind < 5) change(userId, { disabled: false })
      else if (kind < 6) change(userId, { firstName: `version ${versions}` })
      else if (kind < 7) authenticator.invalidate(userId)
      else if (kind < 8) authenticator.setFeedLate(random(4) === 0)
      else {
        // The run must not end without sessions and keys.
        const index = someIndex()
        all[index] = add(index)
      }
    }

    for (let operation = 0; operation < operations; operation += 1) {
      const kind = random(20)
      if (store.waiting.length >= WAITING || (later && kind < 6)) await release()
      else if (kind < 19) {
        authenticate()
        if (random(50) === 0) attack()
      } else alter()
      if (operation % 20_000 === 0) await lastRequests.flush()
    }
    while (store.waiting.length > 0) await release()
    await settle()
    checkAll()
    t.equal(count.wrong, 0, 'wrong identities')
    t.equal(count.late, 0, 'principals after a revocation')
    t.equal(count.forged, 0, 'principals of tampered tokens')
    const { hits } = authenticator.cacheStatistics
    t.ok(hits > operations / 20, `${hits} requests found their token in the cache`)
    t.ok(count.right > 10_000 && count.rejected > 1_000, `both verdicts are met: ${JSON.stringify(count)}`)
  })
}

t.test('short histories over few tokens agree with the model, with shrinking', async () => {
  const operation = fc.record({
    kind: fc.constantFrom(
      'identify',
      'identify',
      'respond old',
      'respond new',
      'revoke',
      'rename',
      'evict',
      'late',
      'in time',
      'lose changes',
    ),
    at: fc.nat(5),
  })
  const histories = fc.array(operation, { maxLength: 40 })
  const property = fc.asyncProperty(
    histories,
    fc.constantFrom([2, 2], [6, 6], [6, 1], [3, 1]),
    async (history, capacities) => {
      const { store, authenticator, addCredential, change } = setUp(...capacities)
      const all = Array.from({ length: 6 }, (_, index) =>
        addCredential(index < 4 ? 'session' : 'apiKey', `user ${index % 3}`),
      )
      const check = (credential: TestCredential, principal: Principal | null): void => {
        const user = credential.exists() ? store.users.get(credential.userId) : undefined
        if (!isSame(principal?.cachedUser.user, user))
          throw new Error(`${credential.userId}: ${principal?.cachedUser.user.firstName}`)
        if (principal !== null && principal.credentialId !== credential.id)
          throw new Error('another session or API key')
      }
      const pending: Promise<void>[] = []
      for (const [step, { kind, at }] of history.entries()) {
        const credential = all[at] ?? addCredential('session', 'nobody')
        if (kind === 'identify') {
          const principal = authenticator.authenticate(credential.token)
          if (principal instanceof Promise)
            pending.push(principal.then(principal => check(credential, principal)))
          else check(credential, principal)
        } else if (kind === 'revoke') credential.revoke()
        else if (kind === 'rename') change(credential.userId, { firstName: `version ${step}` })
        else if (kind === 'lose changes') authenticator.invalidateAll()
        else if (kind === 'evict') authenticator.invalidate(credential.userId)
        else if (kind === 'late' || kind === 'in time') authenticator.setFeedLate(kind === 'late')
        else {
          store.waiting.splice(at % (store.waiting.length || 1), 1)[0]?.(kind === 'respond old')
          await settle()
        }
      }
      while (store.waiting.length > 0) {
        store.waiting.shift()?.(true)
        await settle()
      }
      await Promise.all(pending)
    },
  )
  await fc.assert(property, { numRuns: 2_000 })
})
