import { setTimeout as sleep } from 'node:timers/promises'

/** Asks again until the answer is the one that is waited for, at most for so many milliseconds. @returns the last one. */
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
