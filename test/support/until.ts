import { setTimeout as sleep } from 'node:timers/promises'

/** Polls until the value is the expected one, at most for `limit` milliseconds. @returns the last value. */
export const until = async <Value>(
  ask: () => Promise<Value> | Value,
  isIt: (value: Value) => boolean,
  limit: number,
): Promise<Value> => {
  const end = Date.now() + limit
  let value = await ask()
  while (!isIt(value) && Date.now() < end) {
    await sleep(20)
    value = await ask()
  }
  return value
}
