/** `seed --remove`: removes the accounts of load tests. */
import { setTimeout as delay } from 'node:timers/promises'
import { ServiceError } from '#base/errors'
import { OPERATOR } from '#core/audit-log/event'
import { SEED_EMAILS, type SeedStore, seedNumber } from '#core/store/seed'
import type { Users } from '#core/users/users'
import { countProgress, stopSignal } from '#feature/commands/output'

/** Users of a slice, at least; at most twice as many. */
const SLICE = 200

/**
 * Users that are removed at once. They hold a SQLite file's lock for some milliseconds; more would wait too long for one of the few
 * connections to a slow PostgreSQL.
 */
const PARALLEL = 20

/** Milliseconds between two slices, in which other processes get the lock. */
const PAUSE = 10

const remove = async (users: Pick<Users, 'remove'>, id: string): Promise<boolean> => {
  try {
    await users.remove(id, OPERATOR)
    return true
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'userNotFound') return false
    throw error
  }
}

/** The ids of the accounts up to a number, in slices. The order of the e-mails is not that of the numbers. */
async function* slicesOf(store: Pick<SeedStore, 'list'>, last: number): AsyncGenerator<readonly string[]> {
  let ids: string[] = []
  let page = await store.list(SEED_EMAILS.after, SLICE)
  for (let end = page.at(-1); end !== undefined; end = page.at(-1)) {
    for (const { id, email } of page) {
      const number = seedNumber(email)
      if (number !== null && number <= last) ids.push(id)
    }
    if (ids.length >= SLICE) {
      yield ids
      ids = []
    }
    page = await store.list(end.email, SLICE)
  }
  yield ids
}

export interface RemovalReport {
  readonly removed: number
  readonly complete: boolean
}

/** Removes the accounts up to `user<last>@seed.example` like every other removal: with events, and noticed by running services. */
export const removeSeeded = async (
  seedStore: Pick<SeedStore, 'list'>,
  users: Pick<Users, 'remove'>,
  last: number,
): Promise<RemovalReport> => {
  const signal = stopSignal()
  const reportProgress = countProgress('user')
  let removed = 0
  for await (const ids of slicesOf(seedStore, last)) {
    if (signal.aborted) return { removed, complete: false }
    for (let from = 0; from < ids.length; from += PARALLEL) {
      const outcomes = await Promise.all(ids.slice(from, from + PARALLEL).map(id => remove(users, id)))
      removed += outcomes.filter(Boolean).length
    }
    reportProgress(removed)
    await delay(PAUSE)
  }
  return { removed, complete: true }
}
