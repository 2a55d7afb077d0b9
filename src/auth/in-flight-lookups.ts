import type { MaybePromise } from '../users/user-store.ts'

type Ask<Answer> = (onAsk: () => void) => MaybePromise<Answer>

/** A question to the store, and whether something has changed since it was asked. */
export class Lookup<Answer> {
  changed = false
  /** Milliseconds of `performance.now()`. */
  askedAt = 0
  readonly #ask: Ask<Answer>
  readonly #onAsk = () => {
    this.changed = false
    this.askedAt = performance.now()
  }

  /** @param ask calls what it is given when the store is really asked: until then no change matters. */
  constructor(ask: Ask<Answer>) {
    this.#ask = ask
  }

  ask(): MaybePromise<Answer> {
    this.#onAsk()
    return this.#ask(this.#onAsk)
  }
}

const mark = (inFlightLookups: Iterable<Lookup<unknown>> = []): void => {
  for (const lookup of inFlightLookups) lookup.changed = true
}

/** Look-ups under way in a store across a network, by user: one that meets a change has to be made again. */
export class InFlightLookups {
  readonly #underWay = new Map<string, Set<Lookup<unknown>>>()

  userChanged(userId: string): void {
    mark(this.#underWay.get(userId))
  }

  anyoneChanged(): void {
    for (const inFlightLookups of this.#underWay.values()) mark(inFlightLookups)
  }

  /**
   * A change that arrives while the store is being asked may not be in its answer: it is asked again. One that arrives
   * while the question waits for a connection is in it: were that asked again too, then behind a long queue, with changes
   * coming faster than it moves, nothing would ever be answered.
   * @param asked the lookup's first answer.
   * @param use made with an answer that has every change of the user which has arrived, before another one can.
   */
  async settle<Answer, Result>(
    userId: string,
    lookup: Lookup<Answer>,
    asked: Promise<Answer>,
    use: (answer: Answer) => Result,
  ): Promise<Result> {
    const ofUser = this.#underWay.get(userId) ?? new Set()
    this.#underWay.set(userId, ofUser.add(lookup))
    try {
      let answer = await asked
      while (lookup.changed) answer = await lookup.ask()
      return use(answer)
    } finally {
      ofUser.delete(lookup)
      if (ofUser.size === 0) this.#underWay.delete(userId)
    }
  }
}
