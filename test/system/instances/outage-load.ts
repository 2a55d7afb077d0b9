/** Sign-ups, sign-ins and reads on both instances, while one of them or the database goes down. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import { bodyOf, calls, type TimedResponse } from './http.ts'
import type { Journal } from './response-checks.ts'
import type { Definite, PairClient } from './retrying-client.ts'

/** Workers of each kind, and milliseconds that each waits after a call: hashing gets about a core. */
const WORKERS = { signUp: 3, signIn: 2, read: 4 }
const REST = { signUp: 60, signIn: 60, read: 20 }

/** One of so many sign-ups is made on both instances concurrently. */
const CONTEST_ONE_IN = 6

export interface Account {
  readonly email: string
  readonly password: string
  /** The newest token; `null` while the responses with one were lost. */
  token: string | null
}

export interface OutageLoad {
  /** E-mails of all sign-ups that were sent. */
  readonly sent: ReadonlySet<string>
  /** E-mails whose sign-up was acknowledged, or found to have happened. */
  readonly accounts: readonly Account[]
  /** Sign-ups that were made on both instances concurrently. */
  readonly contested: number
  stop(): Promise<void>
}

/** Whether the response to a token has its own account. */
export const identifies = (response: TimedResponse, { email }: Account): boolean =>
  response.status === 200 && bodyOf(response).email === email

export const startOutageLoad = (client: PairClient, journal: Journal, random: Random): OutageLoad => {
  const sent = new Set<string>()
  const accounts: Account[] = []
  let contested = 0
  let running = true

  /** One sign-up per e-mail succeeds, and a 409 needs another one that may have succeeded. */
  const checkSignUp = (email: string, outcomes: readonly Definite[]): void => {
    const call = calls.signUp(email, '')
    const statuses = outcomes.map(({ response }) => response?.status)
    const wins = statuses.filter(status => status === 201).length
    const unknown = outcomes.some(({ repeats }) => repeats > 0)
    if (statuses.some(status => status !== 201 && status !== 409 && status !== undefined))
      journal.failure('both', call, `statuses ${statuses}`)
    if (wins > 1) journal.failure('both', call, `${email} was taken twice`)
    if (wins === 0 && !unknown) journal.failure('both', call, `${email} was new, and no sign-up succeeded`)
  }

  const signUp = async (): Promise<void> => {
    const email = `outage-${sent.size + 1}@example.com`
    const password = `the pass phrase of number ${sent.size + 1}`
    sent.add(email)
    const call = calls.signUp(email, password)
    const isContest = random.integer(1, CONTEST_ONE_IN) === 1
    if (isContest) contested += 1
    const outcomes = await Promise.all(
      isContest ? client.pair.map(instance => client.persist(call, instance)) : [client.persist(call)],
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
      journal.failure('either', call, `${account.email}, the right pair: ${response.status} ${response.text}`)
  }

  const read = async (): Promise<void> => {
    const account = random.pick(accounts)
    if (account === undefined || account.token === null) return
    const call = calls.account(account.token)
    const instance = client.either()
    const response = await client.attempt(instance, call)
    if (response !== null && response.status !== 503 && !identifies(response, account))
      journal.failure(instance.name, call, `${account.email}: ${response.status} ${response.text}`)
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
    sent,
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
