/** The load during a kill: sign-ups, which wait for hashing, and changes, most of which do not. */

import type { Random } from '../../support/random.ts'
import { type Account, newAccount, settle } from './account.ts'
import { type ChangeKind, isChangeable, makeChange, pickHashingKind, pickKind } from './changes.ts'
import type { Client } from './client.ts'

/** Workers that sign up. With more, the queue for hashing is so long that hardly a password is changed before the kill. */
const SIGN_UPS = 5

/**
 * Workers that change accounts. One worker at a time changes an account. The first one makes the changes that wait for hashing, so
 * that the others do not wait.
 */
const CHANGERS = 9

export interface Outcome {
  /** The changes with a 2xx response. */
  readonly acknowledged: ChangeKind[]
  /** The changes without a response. */
  readonly inFlight: ChangeKind[]
  /** Accounts whose sign-up was acknowledged. */
  readonly created: Account[]
  readonly changed: Set<Account>
  /** Those of {@link changed} whose change concerns how they sign in. */
  readonly signInChanged: Set<Account>
  /** Responses that a running server should not send, such as 503. */
  readonly unexpected: string[]
}

export interface Load {
  /** Ends the load; resolves when no call is in flight. */
  stop(): Promise<Outcome>
}

/** @param accounts of earlier rounds. */
export const startLoad = (
  client: Client,
  random: Random,
  round: number,
  accounts: readonly Account[],
): Load => {
  const outcome: Outcome = {
    acknowledged: [],
    inFlight: [],
    created: [],
    changed: new Set(),
    signInChanged: new Set(),
    unexpected: [],
  }
  let running = true
  let count = 0
  const uniqueName = (): string => {
    count += 1
    return `${round}-${count}`
  }

  const signUp = async (): Promise<void> => {
    const name = uniqueName()
    const [email, password] = [`crash-${name}@example.com`, `a pass phrase of ${name}`]
    const { status, body } = await client.signUp(email, password, name)
    if (status === 201) outcome.created.push(newAccount(email, password, name, body))
    else outcome.unexpected.push(`sign-up returned ${status}`)
  }

  /** Changes an account of this worker's share, which is another one each round, and records the expected state before the call. */
  const change = async (worker: number): Promise<void> => {
    const share = [...accounts, ...outcome.created].filter(
      (account, index) => (index + round) % CHANGERS === worker && isChangeable(account),
    )
    const account = random.pick(share)
    if (account === undefined) {
      await new Promise(resolve => setTimeout(resolve, 5))
      return
    }
    const picked = worker === 0 ? pickHashingKind(random) : pickKind(random)
    const made = makeChange(picked, account, client, random, uniqueName())
    const { kind, status: expected, next, send, receive } = made
    outcome.changed.add(account)
    if (kind === 'password' || kind === 'removal' || kind === 'disabling') outcome.signInChanged.add(account)
    account.state.pending = next
    const { status, body } = await send().catch(error => {
      outcome.inFlight.push(kind)
      throw error
    })
    if (status === expected) {
      outcome.acknowledged.push(kind)
      settle(account, (body && receive?.(body)) ?? next)
    } else outcome.unexpected.push(`${kind} returned ${status}`)
  }

  const work = async (step: () => Promise<void>): Promise<void> => {
    while (running) {
      try {
        await step()
      } catch {
        // The server is gone: requests in flight are neither acknowledged nor excluded.
        return
      }
    }
  }

  const workers = [
    ...Array.from({ length: SIGN_UPS }, () => work(signUp)),
    ...Array.from({ length: CHANGERS }, (_, worker) => work(() => change(worker))),
  ]
  return {
    async stop() {
      running = false
      await Promise.all(workers)
      return outcome
    },
  }
}
