import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Polls until the value is the expected one. The last poll begins `limit` milliseconds after the first one, or later: a busy machine
 * that delays a poll does not end the test early.
 * @returns the last value.
 */
export const until = async <Value>(
  ask: () => Promise<Value> | Value,
  isIt: (value: Value) => boolean,
  limit: number,
): Promise<Value> => {
  const end = performance.now() + limit
  for (;;) {
    const isLast = performance.now() >= end
    const value = await ask()
    if (isIt(value) || isLast) return value
    await sleep(20)
  }
}
