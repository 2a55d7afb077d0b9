/** `seed --remove`: removes the accounts of load tests. */
import { setTimeout as delay } from 'node:timers/promises'
import { OPERATOR } from '../audit-log/event.ts'
import { ServiceError } from '../errors.ts'
import { SEED_EMAILS, type SeedStore, seedNumber } from '../storage/seed.ts'
import type { Users } from '../users/users.ts'
import { countProgress, stopSignal } from './output.ts'

/** Users that are removed at once. They take at most some ten milliseconds of a SQLite file's lock. */
const SLICE = 200

/** Milliseconds between two slices, in which other processes get the lock. */
const PAUSE = 10

/** @returns whether the user was there. */
const remove = async (users: Pick<Users, 'remove'>, id: string): Promise<boolean> => {
  try {
    await users.remove(id, OPERATOR)
    return true
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'userNotFound') return false
    throw error
  }
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
  let after = SEED_EMAILS.after
  for (;;) {
    if (signal.aborted) return { removed, complete: false }
    const found = await seedStore.list(after, SLICE)
    const ids = found.flatMap(({ id, email }) =>
      (seedNumber(email) ?? Number.POSITIVE_INFINITY) <= last ? id : [],
    )
    const outcomes = await Promise.all(ids.map(id => remove(users, id)))
    removed += outcomes.filter(Boolean).length
    reportProgress(removed)
    const end = found.at(-1)
    if (end === undefined) return { removed, complete: true }
    after = end.email
    if (ids.length > 0) await delay(PAUSE)
  }
}
