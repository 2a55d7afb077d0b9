/** Sign-ups, sign-ins and reads on both instances, while one of them or the database goes down. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import { bodyOf, calls, type TimedResponse } from './http.ts'
import type { Journal } from './response-checks.ts'
import type { Definite, PairClient } from './retrying-client.ts'

/** Workers of each kind, and milliseconds that each rests after a call: hashing gets about a core. */
const WORKERS = { signUp: 3, signIn: 2, read: 4 }
const REST = { signUp: 60, signIn: 60, read: 20 }

/** One sign-up in so many is made on both instances at once. */
const CONTEST_ONE_IN = 6

export interface Account {
  readonly email: string
  readonly password: string
  /** The newest; `null` while the answers that had one were lost. */
  token: string | null
}

export interface OutageLoad {
  /** E-mails for which a sign-up was sent, acknowledged or not. */
  readonly asked: ReadonlySet<string>
  /** Whose sign-up was acknowledged, or found to have happened. */
  readonly accounts: readonly Account[]
  /** Sign-ups that were made on both instances at once. */
  readonly contested: number
  stop(): Promise<void>
}

/** Whether a token was answered with its own account. */
export const identifies = (response: TimedResponse, { email }: Account): boolean =>
  response.status === 200 && bodyOf(response).email === email

export const startOutageLoad = (client: PairClient, journal: Journal, random: Random): OutageLoad => {
  const asked = new Set<string>()
  const accounts: Account[] = []
  let contested = 0
  let running = true

  /** One e-mail wins once, and no answer is 409 unless there was somebody to lose to. */
  const checkSignUp = (email: string, outcomes: readonly Definite[]): void => {
    const call = calls.signUp(email, '')
    const statuses = outcomes.map(({ response }) => response?.status)
    const wins = statuses.filter(status => status === 201).length
    const unknown = outcomes.some(({ repeats }) => repeats > 0)
    if (statuses.some(status => status !== 201 && status !== 409 && status !== undefined))
      journal.fault('both', call, `answered ${statuses}`)
    if (wins > 1) journal.fault('both', call, `${email} was taken twice`)
    if (wins === 0 && !unknown) journal.fault('both', call, `${email} was new, and nobody got it`)
  }

  const signUp = async (): Promise<void> => {
    const email = `outage-${asked.size + 1}@example.com`
    const password = `the pass phrase of number ${asked.size + 1}`
    asked.add(email)
    const call = calls.signUp(email, password)
    const isContest = random.integer(1, CONTEST_ONE_IN) === 1
    if (isContest) contested += 1
    const outcomes = await Promise.all(
      isContest ? [client.persist(call, 0), client.persist(call, 1)] : [client.persist(call)],
    )
    checkSignUp(email, outcomes)
    const won = outcomes.find(({ response }) => response?.status === 201)?.response
    const exists = outcomes.some(({ response }) => response?.status === 409)
    if (won || exists)
      accounts.push({ email, password, token: won ? (bodyOf(won).accessToken as string) : null })
  }

  const signIn = async (): Promise<void> => {
    const account = random.pick(accounts)
    if (account === undefined) return
    const call = calls.signIn(account.email, account.password)
    const { response } = await client.persist(call)
    if (response === null) return
    if (response.status === 200) account.token = bodyOf(response).accessToken as string
    else
      journal.fault('either', call, `${account.email}, the right pair: ${response.status} ${response.text}`)
  }

  const read = async (): Promise<void> => {
    const account = random.pick(accounts)
    if (account === undefined || account.token === null) return
    const call = calls.account(account.token)
    const instance = client.either()
    const response = await client.attempt(instance, call)
    if (response !== null && response.status !== 503 && !identifies(response, account))
      journal.fault(instance.name, call, `${account.email}: ${response.status} ${response.text}`)
  }

  const work = async (step: () => Promise<void>, rest: number): Promise<void> => {
    while (running) {
      await step()
      await sleep(rest)
    }
  }
  const start = (count: number, step: () => Promise<void>, rest: number) =>
    Array.from({ length: count }, () => work(step, rest))
  const workers = [
    ...start(WORKERS.signUp, signUp, REST.signUp),
    ...start(WORKERS.signIn, signIn, REST.signIn),
    ...start(WORKERS.read, read, REST.read),
  ]

  return {
    asked,
    accounts,
    get contested() {
      return contested
    },
    async stop() {
      running = false
      await Promise.all(workers)
    },
  }
}
