import { setTimeout as sleep } from 'node:timers/promises'

/** Asks again until the answer is the one that is waited for, at most for so many milliseconds. @returns the last one. */
export const until = async <Answer>(
  ask: () => Promise<Answer> | Answer,
  isIt: (answer: Answer) => boolean,
  limit: number,
): Promise<Answer> => {
  const end = Date.now() + limit
  let answer = await ask()
  while (!isIt(answer) && Date.now() < end) {
    await sleep(20)
    answer = await ask()
  }
  return answer
}
