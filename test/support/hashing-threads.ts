/** PasswordHasher by itself, on real threads. */

import { ServiceError } from '#base/errors'
import { type HasherLimits, PooledPasswordHasher } from '#core/passwords/hasher'
import type { Context } from './build.ts'

/** One thread and two places in the queue for either kind of hash, unless the test says otherwise. */
export const smallHashing = (
  t: Context,
  limits: Partial<HasherLimits> = {},
  onFailure = (error: unknown): void => {
    throw error
  },
): PooledPasswordHasher => {
  const lane = { threads: 1, maxWaiting: 2 }
  const hashing = new PooledPasswordHasher(onFailure, {
    ...lane,
    expensive: { ...lane, maxWaitingPerAccount: 2 },
    idle: 60_000,
    ...limits,
  })
  t.teardown(() => hashing.close())
  return hashing
}

/** Starts all at once. @returns the outcomes, in the order in which they ended. */
export const outcomes = async (tasks: Promise<unknown>[]): Promise<string[]> => {
  const ended: string[] = []
  const note = (error: unknown): number =>
    ended.push(error instanceof ServiceError ? error.code : `unexpected ${error}`)
  await Promise.all(tasks.map(task => task.then(() => ended.push('done'), note)))
  return ended
}

export const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)
