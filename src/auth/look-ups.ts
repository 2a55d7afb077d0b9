import type { MaybePromise } from '../users/user-store.ts'

interface LookUp {
  changed: boolean
}

const mark = (lookUps: Iterable<LookUp> = []): void => {
  for (const lookUp of lookUps) lookUp.changed = true
}

/** Look-ups under way in a store across a network, by user: one that meets a change has to be made again. */
export class LookUps {
  readonly #underWay = new Map<string, Set<LookUp>>()

  userChanged(userId: string): void {
    mark(this.#underWay.get(userId))
  }

  anyoneChanged(): void {
    for (const lookUps of this.#underWay.values()) mark(lookUps)
  }

  /**
   * A change that arrives while the store is being asked may not be in its answer: it is asked again.
   * @param use made with an answer that has every change of the user which has arrived, before another one can.
   */
  async settle<Answer, Result>(
    userId: string,
    asked: Promise<Answer>,
    ask: () => MaybePromise<Answer>,
    use: (answer: Answer) => Result,
  ): Promise<Result> {
    const lookUp = { changed: false }
    const ofUser = this.#underWay.get(userId) ?? new Set()
    this.#underWay.set(userId, ofUser.add(lookUp))
    try {
      let answer = await asked
      while (lookUp.changed) {
        lookUp.changed = false
        answer = await ask()
      }
      return use(answer)
    } finally {
      ofUser.delete(lookUp)
      if (ofUser.size === 0) this.#underWay.delete(userId)
    }
  }
}
