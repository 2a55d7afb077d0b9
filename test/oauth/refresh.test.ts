/** Refresh tokens: the rule of rotation, checked against the real operations (docs/oauth.md). */
import { randomInt } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { FIRST, type Generations, rotated } from '#features/oauth/refresh-rule'
import { allEvents } from '../support/admin-routes.ts'
import { accountStatus, bearer, type manualClock, manualClock as newClock, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import {
  buildOAuth,
  claimsOf,
  type RegisteredClient,
  registerClient,
  requestToken,
} from '../support/oauth.ts'
import { CALLBACK, newTokens, PUBLIC, refresh, tokensIn } from '../support/oauth-flow.ts'

const WINDOW = 60_000
const DAY = 86_400_000
const CONFIDENTIAL = { redirectUris: [CALLBACK], scopes: ['account:read', 'account:write', 'offline_access'] }

/** A process of a client. All share one store of credentials. */
interface Process {
  /** The generation that it has sent, and the response to it, unless it was lost. */
  readonly flight: { readonly sent: number; readonly received: number | null } | null
}

t.test('the rule: in no interleaving of four processes with lost responses is one refused', async t => {
  interface State {
    readonly generations: Generations
    readonly isYoung: boolean
    readonly kept: number
    readonly processes: readonly Process[]
  }
  const LAST = 5
  for (const keepsNewest of [true, false]) {
    const idle: Process = { flight: null }
    const first: State = { generations: FIRST, isYoung: false, kept: 0, processes: Array(4).fill(idle) }
    const seen = new Set<string>()
    const queue = [first]
    for (let state = queue.pop(); state !== undefined; state = queue.pop()) {
      const key = JSON.stringify(state)
      if (seen.has(key) || state.generations.issued > LAST) continue
      seen.add(key)
      const { generations, isYoung, kept, processes } = state
      const withProcess = (index: number, flight: Process['flight'], change: Partial<State> = {}): void =>
        void queue.push({ ...state, ...change, processes: processes.with(index, { flight }) })
      for (const [index, { flight }] of processes.entries()) {
        if (flight === null) {
          withProcess(index, { sent: kept, received: null })
        } else if (flight.received === null) {
          const next = rotated(generations, flight.sent, isYoung)
          if (next === null) throw new Error(`refused: ${key}`)
          const isNew = next.current !== generations.current
          const change = { generations: next, isYoung: isYoung || isNew }
          withProcess(index, { ...flight, received: next.current }, change)
        } else {
          const newest = keepsNewest ? Math.max(kept, flight.received) : flight.received
          withProcess(index, null, { kept: newest })
          withProcess(index, null)
        }
      }
      if (isYoung && processes.every(({ flight }) => flight === null))
        queue.push({ ...state, isYoung: false })
    }
    t.ok(seen.size > 1_000, `${seen.size} states`)
  }
})

t.test('the rule: a thief who goes on beside the client is found', async t => {
  for (let turns = 0; turns < 2 ** 12; turns += 1) {
    let generations: Generations | null = FIRST
    const has = { client: 0, thief: 0 }
    for (let turn = 0; turn < 12 && generations !== null; turn += 1) {
      const who = (turns >> turn) & 1 ? 'thief' : 'client'
      generations = rotated(generations, has[who], false)
      if (generations !== null) has[who] = generations.current
    }
    const ofThief = turns.toString(2).replaceAll('0', '').length
    // Both refresh at least twice after the theft, in turns.
    const alternates = /(?:01){3}/.test(turns.toString(2).padStart(12, '0'))
    if (ofThief > 1 && alternates && generations !== null) t.fail(`not found: ${turns.toString(2)}`)
  }
  t.pass('every interleaving')
})

interface Service {
  readonly instances: readonly FastifyInstance[]
  readonly clock: ReturnType<typeof manualClock>
  readonly client: RegisteredClient
}

/** One history of four processes against the service: random steps, lost responses and kills. @returns what was refused. */
const history = async ({ instances, clock, client }: Service, refreshToken: string, steps: number) => {
  let kept = refreshToken
  for (let step = 0; step < steps; step += 1) {
    const callers = Array.from({ length: 1 + randomInt(4) }, () => randomInt(instances.length))
    const responses = await Promise.all(
      callers.map(index => refresh(instances[index] as FastifyInstance, client, kept)),
    )
    for (const response of responses) {
      if (response.statusCode !== 200) return response.body
      // A lost response, or a process that was killed, keeps nothing; of the others one writes last.
      if (randomInt(3) > 0) kept = tokensIn(response).refreshToken
    }
    if (randomInt(2) === 0) clock.advance(randomInt(2) === 0 ? WINDOW : WINDOW / 10)
  }
  return null
}

await onEnginesOfRun(t, async (t, engine) => {
  const service = async (t: Parameters<typeof buildOAuth>[1], metadata: object = PUBLIC) => {
    const clock = newClock()
    const env = { DATABASE_URL: await engine.newDatabase(t), SESSION_LIFETIME: '365d', SESSION_IDLE: '365d' }
    const app = await buildOAuth(engine, t, { env, clock: clock.now })
    const others = engine.name === 'postgres' ? [await buildOAuth(engine, t, { env, clock: clock.now })] : []
    const client = await registerClient(app, metadata)
    const user = await signUp(app)
    return { app, instances: [app, ...others], clock, client, user }
  }

  t.test('random histories of four processes sign nobody out', async t => {
    const { app, instances, clock, client, user } = await service(t)
    for (let run = 0; run < 10; run += 1) {
      const { refreshToken } = await newTokens(app, client, user.token)
      t.equal(await history({ instances, clock, client }, refreshToken, 12), null)
    }
  })

  t.test('P21: two refreshes at once get the same successor, and both tokens work', async t => {
    const { app, instances, clock, client, user } = await service(t)
    const { refreshToken } = await newTokens(app, client, user.token)
    clock.advance(WINDOW)
    const responses = await Promise.all(
      [0, 1, 2, 3].map(index =>
        refresh(instances[index % instances.length] as FastifyInstance, client, refreshToken),
      ),
    )
    const tokens = responses.map(tokensIn)
    t.equal(new Set(tokens.map(each => each.refreshToken)).size, 1)
    t.not(tokens[0]?.refreshToken, refreshToken)
    for (const { accessToken } of tokens) t.equal(await accountStatus(app, accessToken), 200)
  })

  t.test('P22: a lost response, repeated an hour later, works; the skipped token is dead', async t => {
    const { app, clock, client, user } = await service(t)
    const { refreshToken } = await newTokens(app, client, user.token)
    clock.advance(WINDOW)
    const lost = tokensIn(await refresh(app, client, refreshToken))
    clock.advance(60 * WINDOW)
    const next = tokensIn(await refresh(app, client, refreshToken))
    t.not(next.refreshToken, lost.refreshToken)
    t.equal((await refresh(app, client, lost.refreshToken)).statusCode, 400)
  })

  t.test('P23, P24: the predecessor after the use of its successor ends the grant', async t => {
    const { app, instances, clock, client, user } = await service(t)
    const first = await newTokens(app, client, user.token)
    clock.advance(WINDOW)
    const second = tokensIn(await refresh(app, client, first.refreshToken))
    clock.advance(WINDOW)
    const third = tokensIn(await refresh(app, client, second.refreshToken))
    t.equal(await accountStatus(app, third.accessToken), 200)
    const stolen = await refresh(instances.at(-1) as FastifyInstance, client, first.refreshToken)
    t.match(stolen.json(), { error: 'invalid_grant' })
    for (const instance of instances) t.equal(await accountStatus(instance, third.accessToken), 401)
    t.equal((await refresh(app, client, third.refreshToken)).statusCode, 400)
    const [event] = await allEvents(app, { userId: user.id })
    t.match(event, { type: 'grant.reused', details: { client: client.id } })
  })

  t.test('P7: a client with a secret needs it, and its token stays the same', async t => {
    const { app, clock, client, user } = await service(t, CONFIDENTIAL)
    const { refreshToken } = await newTokens(app, client, user.token)
    for (let day = 0; day < 3; day += 1) {
      clock.advance(DAY)
      t.equal(tokensIn(await refresh(app, client, refreshToken)).refreshToken, refreshToken)
    }
    const parameters = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: client.id }
    t.equal((await requestToken(app, parameters)).statusCode, 401)
  })

  t.test('scopes are narrowed, never widened; invented tokens are refused', async t => {
    const { app, client, user } = await service(t, CONFIDENTIAL)
    const scope = 'account:read offline_access'
    const { refreshToken } = await newTokens(app, client, user.token, { scope })
    const narrowed = await refresh(app, client, refreshToken, { scope: 'account:read account:write' })
    t.equal(claimsOf(tokensIn(narrowed).accessToken).scope, 'account:read')
    t.match((await refresh(app, client, refreshToken, { scope: 'account:write' })).json(), {
      error: 'invalid_scope',
    })
    for (const invented of ['x', 'gate_ort_', `${refreshToken}A`, `${refreshToken.slice(0, -4)}AAAA`])
      t.match((await refresh(app, client, invented)).json(), { error: 'invalid_grant' }, invented)
  })

  t.test('a grant ends when it is idle, and at its absolute end', async t => {
    const { app, clock, client, user } = await service(t, CONFIDENTIAL)
    const idle = await newTokens(app, client, user.token)
    clock.advance(30 * DAY)
    t.equal((await refresh(app, client, idle.refreshToken)).statusCode, 400)
    const { token } = await signUp(app)
    const used = await newTokens(app, client, token)
    for (let day = 0; day < 175; day += 25) {
      clock.advance(25 * DAY)
      t.equal((await refresh(app, client, used.refreshToken)).statusCode, 200)
    }
    clock.advance(6 * DAY)
    t.equal((await refresh(app, client, used.refreshToken)).statusCode, 400)
  })

  t.test('P20: after a revocation during refreshes nothing lives', async t => {
    const { app, instances, client, user } = await service(t, CONFIDENTIAL)
    const { refreshToken } = await newTokens(app, client, user.token)
    const [grant] = (await app.inject({ url: '/account/grants', headers: bearer(user.token) })).json().results
    const url = `/account/grants/${grant.id}`
    const refreshes = Array.from({ length: 12 }, (_, index) =>
      refresh(instances[index % instances.length] as FastifyInstance, client, refreshToken),
    )
    const ended = app.inject({ method: 'DELETE', url, headers: bearer(user.token) })
    const responses = await Promise.all(refreshes)
    t.equal((await ended).statusCode, 204)
    for (const response of responses)
      if (response.statusCode === 200)
        for (const instance of instances)
          t.equal(await accountStatus(instance, tokensIn(response).accessToken), 401)
    t.equal((await refresh(app, client, refreshToken)).statusCode, 400)
  })
})
