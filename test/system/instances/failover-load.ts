/** Sign-ups, profile changes, sign-outs and disables on both instances, and their acknowledgements. */
import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../../support/postgres.ts'
import type { Random } from '../../support/random.ts'
import { bodyOf, calls } from './http.ts'
import type { Instance } from './instance.ts'
import { milliseconds } from './report.ts'
import type { Journal } from './response-checks.ts'
import type { PairClient } from './retrying-client.ts'

/** Workers of each kind, and milliseconds that each waits after a call. */
const WORKERS = { signUp: 3, rename: 3, revoke: 3, watch: 3 }
const REST = { signUp: 40, rename: 40, revoke: 750, watch: 15 }

/** The number of latest revoked tokens that are checked most often. */
const LATEST = 10

/**
 * Milliseconds after which every instance must reject a token whose revocation was not acknowledged: its response was lost or 503, and a
 * repeated sign-out found the session ended. After an acknowledgement it is 0.
 */
const UNACKNOWLEDGED = 550

interface Holder {
  readonly id: string
  readonly email: string
  readonly token: string
  /** The last acknowledged first name. */
  name: string | null
  /** First names that were sent later, without a definite response. */
  readonly unsure: Set<string>
  /** From when on every instance must reject the token, and how it was revoked; `null` while it is valid. */
  revoked: { readonly at: number; readonly disabled: boolean } | null
  /** A revocation is in flight. */
  isLeaving: boolean
}

export interface FailoverLoad {
  readonly holders: readonly Holder[]
  readonly renames: number
  /** Responses to revoked tokens. */
  readonly watched: number
  /** Tokens that were accepted after their revocation. */
  readonly taken: readonly string[]
  stop(): Promise<void>
}

export const startFailoverLoad = (
  client: PairClient,
  pair: readonly [Instance, Instance],
  journal: Journal,
  random: Random,
): FailoverLoad => {
  const holders: Holder[] = []
  const revoked: Holder[] = []
  const taken: string[] = []
  let count = 0
  let renames = 0
  let watched = 0
  let running = true

  const signUp = async (): Promise<void> => {
    count += 1
    const email = `failover-${count}@example.com`
    const { response } = await client.persist(calls.signUp(email, `the pass phrase of number ${count}`))
    // 409: a repeated sign-up that had succeeded; its token was lost.
    if (response === null || response.status === 409) return
    if (response.status !== 201)
      return journal.failure('either', calls.signUp(email, ''), `${response.status}`)
    const { user, accessToken } = bodyOf(response) as { user: { id: string }; accessToken: string }
    const holder = { id: user.id, email, token: accessToken, name: null, unsure: new Set<string>() }
    holders.push({ ...holder, revoked: null, isLeaving: false })
  }

  /** A holder with a valid token, reserved for one worker: `share` of all. */
  const pick = (worker: number, workers: number): Holder | undefined => {
    const good = holders.filter(
      (holder, index) => index % workers === worker && holder.revoked === null && !holder.isLeaving,
    )
    return random.pick(good)
  }

  const rename = async (worker: number): Promise<void> => {
    const holder = pick(worker, WORKERS.rename)
    if (holder === undefined) return
    renames += 1
    const name = `Name ${renames}`
    const call = calls.rename(holder.token, name)
    holder.unsure.add(name)
    const response = await client.attempt(client.either(), call)
    if (response?.status === 200) {
      holder.name = name
      holder.unsure.clear()
    } else if (response !== null && response.status !== 503 && !(response.status === 401 && holder.isLeaving))
      journal.failure('either', call, `${holder.email}: ${response.status} ${response.text}`)
  }

  /** The first two workers stay with an instance each, so that each revokes while the other one waits for its database. */
  const revoke = async (worker: number): Promise<void> => {
    const holder = pick(0, 1)
    if (holder === undefined || holders.length < WORKERS.rename) return
    holder.isLeaving = true
    const disabled = random.integer(1, 2) === 1
    const call = disabled ? calls.disable(holder.id) : calls.signOut(holder.token)
    await useEverywhere(holder)
    const { response, repeats } = await client.persist(call, pair[worker], worker < pair.length)
    if (response === null) return
    const isAcknowledged = response.status === (disabled ? 200 : 204)
    // 401 to a repeated sign-out: the first one succeeded.
    if (!isAcknowledged && !(response.status === 401 && repeats > 0))
      return journal.failure('either', call, `${holder.email}: ${response.status} ${response.text}`)
    holder.revoked = { at: response.respondedAt + (isAcknowledged ? 0 : UNACKNOWLEDGED), disabled }
    revoked.push(holder)
    await useEverywhere(holder)
  }

  /** Uses a token on both instances at once, so that they cache it, or to see that they reject it. */
  const useEverywhere = async (holder: Holder): Promise<void> => {
    await Promise.all(pair.map(instance => use(instance, holder)))
  }

  const use = async (instance: Instance, holder: Holder): Promise<void> => {
    const response = await client.attempt(instance, calls.account(holder.token))
    if (response === null || holder.revoked === null) return
    watched += 1
    const since = response.sentAt - holder.revoked.at
    if (response.status === 200 && since > 0)
      taken.push(
        `${holder.email}: ${instance.name} took the token ${milliseconds(since)} after its revocation`,
      )
  }

  const watch = async (): Promise<void> => {
    const latest = random.integer(1, 3) > 1 ? revoked.slice(-LATEST) : revoked
    const holder = random.pick(latest)
    if (holder !== undefined) await use(client.either(), holder)
  }

  const work = async (step: () => Promise<void>, rest: number): Promise<void> => {
    while (running) {
      await step()
      await sleep(rest)
    }
  }
  const start = (count: number, step: (worker: number) => Promise<void>, rest: number) =>
    Array.from({ length: count }, (_, worker) => work(() => step(worker), rest))
  const workers = [
    ...start(WORKERS.signUp, signUp, REST.signUp),
    ...start(WORKERS.rename, rename, REST.rename),
    ...start(WORKERS.revoke, revoke, REST.revoke),
    ...start(WORKERS.watch, watch, REST.watch),
  ]

  return {
    holders,
    get renames() {
      return renames
    },
    get watched() {
      return watched
    },
    taken,
    async stop() {
      running = false
      await Promise.all(workers)
    },
  }
}

/** Acknowledged writes that the database lacks, and tokens whose state both instances do not know. */
export const lossesOf = async (
  { holders }: FailoverLoad,
  client: PairClient,
  pair: readonly [Instance, Instance],
  databaseUrl: string,
): Promise<string[]> => {
  const rows = await query(databaseUrl, 'SELECT email, first_name, disabled FROM users')
  const stored = new Map(rows.map(row => [String(row.email), row]))
  const losses = holders.flatMap(holder => missingWrites(holder, stored.get(holder.email)))
  for (const { email, token, revoked, isLeaving } of holders) {
    const expected = revoked === null && !isLeaving ? 200 : 401
    for (const instance of pair) {
      const status = (await client.attempt(instance, calls.account(token)))?.status
      if (status !== expected && (revoked !== null || expected === 200))
        losses.push(`${email}: ${instance.name} responded to its token with ${status}, not ${expected}`)
    }
  }
  return losses
}

const missingWrites = (holder: Holder, row: Record<string, unknown> | undefined): string[] => {
  const { email, name, unsure, revoked } = holder
  if (row === undefined) return [`${email} is not in the database`]
  const losses: string[] = []
  const stored = row.first_name as string | null
  if (stored !== name && !unsure.has(stored ?? '')) losses.push(`${email} is named ${stored}, not ${name}`)
  if (revoked?.disabled && Number(row.disabled) !== 1) losses.push(`${email} is not disabled`)
  return losses
}
