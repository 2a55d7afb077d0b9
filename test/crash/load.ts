/** The load under which the server is killed: sign-ups, which wait for hashing, beside changes, which do not. */

import type { Random } from '../support/random.ts'
import { type Account, settle } from './account.ts'
import type { Client } from './client.ts'

/** Workers that sign up, and workers that change accounts; each account is changed by one worker at a time. */
const SIGN_UPS = 8
const CHANGERS = 8

/** One change in so many disables the account, after which it can only be looked at. */
const DISABLE_ONE_IN = 200

export interface Outcome {
  /** Writes that were answered with 2xx. */
  acknowledged: number
  /** Accounts whose sign-up was acknowledged. */
  readonly created: Account[]
  readonly changed: Set<Account>
  /** Answers that nobody should get from a live server, such as 503. */
  readonly unexpected: string[]
}

export interface Load {
  /** Ends the load; resolves when no call is under way any more. */
  stop(): Promise<Outcome>
}

/** @param accounts those of earlier rounds. */
export const startLoad = (
  client: Client,
  random: Random,
  round: number,
  accounts: readonly Account[],
): Load => {
  const outcome: Outcome = { acknowledged: 0, created: [], changed: new Set(), unexpected: [] }
  let running = true
  let count = 0

  const acknowledge = (status: number, expected: number, what: string): boolean => {
    if (status === expected) outcome.acknowledged += 1
    else outcome.unexpected.push(`${what} answered ${status}`)
    return status === expected
  }

  const signUp = async (): Promise<void> => {
    count += 1
    const name = `${round}-${count}`
    const [email, password] = [`crash-${name}@example.com`, `a pass phrase of ${name}`]
    const { status, body } = await client.signUp(email, password, name)
    if (!acknowledge(status, 201, 'sign-up')) return
    const user = body?.user as { id: string } | undefined
    outcome.created.push({
      email,
      password,
      id: user?.id ?? null,
      token: user === undefined ? null : (body?.accessToken as string),
      firstName: { acknowledged: name, pending: undefined },
      disabled: { acknowledged: false, pending: undefined },
    })
  }

  /** Changes an account of this worker's share, and tells before the call what may come of it. */
  const change = async (worker: number): Promise<void> => {
    const share = [...accounts, ...outcome.created].filter(
      ({ token, disabled }, index) => index % CHANGERS === worker && token !== null && !disabled.acknowledged,
    )
    const account = random.pick(share)
    if (account === undefined || account.token === null || account.id === null) {
      await new Promise(resolve => setTimeout(resolve, 5))
      return
    }
    outcome.changed.add(account)
    if (random.integer(1, DISABLE_ONE_IN) === 1) {
      account.disabled.pending = true
      const { status } = await client.disable(account.id)
      if (acknowledge(status, 200, 'disable')) settle(account.disabled, true)
    } else {
      count += 1
      const name = `${round}-${count}`
      account.firstName.pending = name
      const { status } = await client.rename(account.token, name)
      if (acknowledge(status, 200, 'rename')) settle(account.firstName, name)
    }
  }

  const work = async (step: () => Promise<void>): Promise<void> => {
    while (running) {
      try {
        await step()
      } catch {
        // The server is gone: what was under way is neither acknowledged nor excluded.
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
