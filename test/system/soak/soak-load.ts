/**
 * Mixed load with a constant population: a client that signs in signs out, and one that signs up deletes the account.
 * Tokens that end this way are not sent to the measured instance: it would cache each of them until its cache of 100,000 is
 * full, which takes hours and is no leak.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import { bodyOf, type Call, calls } from '../instances/http.ts'
import { type Instance, meets, type Span } from '../instances/instance.ts'
import { asLost, type Journal } from '../instances/response-checks.ts'
import { PASSWORD as REVOCABLE_PASSWORD, type Revocable } from '../instances/revocation-users.ts'
import type { Balancer, Connections } from '../instances/rolling-client.ts'

/** Clients, and milliseconds that each waits between two requests. */
const CLIENTS = 24
const REST = 8

/** Shares of the requests, in thousandths; the others read an account. A sign-in and a sign-up are two requests each. */
const SHARES = { list: 25, rename: 45, signIn: 10, signUp: 5 }

/** Milliseconds between two attempts of a call, and until a call without a response counts as failed. */
const RETRY = 100
const PATIENCE = 20_000

const PASSWORD = 'a pass phrase for a long soak'

export interface SoakLoad {
  /** Responses of each instance, by its name. */
  readonly responded: ReadonlyMap<string, number>
  /** Calls that were repeated because the primary was lost or an instance had closed the connection. */
  readonly repeats: () => { readonly unavailable: number; readonly rejected: number }
  stop(): Promise<void>
}

/** The connections of a client: to all instances, and to those that are restarted. */
interface Client {
  readonly toAll: Connections
  readonly toPair: Connections
}

/**
 * @param pair the instances that are not measured.
 * @param users to read and rename, each with a token.
 * @param troubles while the database has no primary: 503 is not an error then, and is retried.
 */
export const startSoakLoad = (
  balancer: Balancer,
  pair: readonly Instance[],
  users: readonly Revocable[],
  disruptions: readonly Span[],
  journal: Journal,
  random: Random,
): SoakLoad => {
  const responded = new Map<string, number>()
  let unavailable = 0
  let rejected = 0
  let signUps = 0
  let renames = 0
  let running = true

  const isTroubled = (from: number, to: number): boolean => disruptions.some(span => meets(span, from, to))

  /** Repeats a request until there is a definite response. @returns its body; `null` where it is not as expected. */
  const persist = async (
    connections: Connections,
    call: Call,
    expected: number,
    repeated = expected,
  ): Promise<Record<string, unknown> | null> => {
    const end = performance.now() + PATIENCE
    for (let attempts = 0; performance.now() < end; attempts += 1) {
      try {
        const [name, response] = await connections.ask(call)
        responded.set(name, (responded.get(name) ?? 0) + 1)
        if (response.status === expected) return response.text === '' ? {} : bodyOf(response)
        // The previous attempt may have succeeded without a response.
        if (attempts > 0 && response.status === repeated) return null
        if (response.status !== 503 || !isTroubled(response.sentAt, response.respondedAt)) {
          journal.failure(name, call, `${response.status} ${response.text}`)
          return null
        }
        unavailable += 1
      } catch (error) {
        const { message, sent } = asLost(error)
        // Refused connection: no instance received it, so another one is tried. All others are errors, since none was killed.
        if (sent) {
          journal.failure('?', call, `sent without a response: ${message}`)
          return null
        }
        rejected += 1
      }
      await sleep(RETRY)
    }
    journal.failure('?', call, `no definite response within ${PATIENCE} ms`)
    return null
  }

  const signInAndOut = async ({ toAll, toPair }: Client, { email }: Revocable): Promise<void> => {
    const body = await persist(toAll, calls.signIn(email, REVOCABLE_PASSWORD), 200)
    if (body === null) return
    const token = body.accessToken as string
    await persist(toPair, calls.account(token), 200)
    await persist(toPair, calls.signOut(token), 204, 401)
  }
  const signUpAndGo = async ({ toAll, toPair }: Client): Promise<void> => {
    signUps += 1
    const call = calls.signUp(`soak-new-${signUps}@example.com`, PASSWORD)
    const body = await persist(toAll, call, 201, 409)
    if (body === null) return
    await persist(toPair, calls.removeAccount(body.accessToken as string, PASSWORD), 204, 401)
  }
  const step = async (client: Client): Promise<void> => {
    const user = random.pick(users) as Revocable
    let draw = random.integer(1, 1_000)
    const falls = (share: number): boolean => {
      draw -= share
      return draw <= 0
    }
    if (falls(SHARES.list)) return void (await persist(client.toAll, calls.list(), 200))
    if (falls(SHARES.rename)) {
      renames += 1
      return void (await persist(client.toAll, calls.rename(user.token, `Name ${renames}`), 200))
    }
    if (falls(SHARES.signIn)) return signInAndOut(client, user)
    if (falls(SHARES.signUp)) return signUpAndGo(client)
    await persist(client.toAll, calls.account(user.token), 200)
  }
  const work = async (): Promise<void> => {
    const client = { toAll: balancer.connect(), toPair: balancer.connect(pair) }
    while (running) {
      await step(client)
      await sleep(REST)
    }
    client.toAll.close()
    client.toPair.close()
  }
  const clients = Array.from({ length: CLIENTS }, work)

  return {
    responded,
    repeats: () => ({ unavailable, rejected }),
    async stop() {
      running = false
      await Promise.all(clients)
    },
  }
}
