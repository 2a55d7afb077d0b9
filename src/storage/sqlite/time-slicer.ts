/** Long reads beside everything else: a slice at a time, and between two slices the event loop serves the others. */
import { setImmediate } from 'node:timers/promises'
import type { MaybePromise } from '../../users/user-store.ts'

/** Work in slices: `yield`s between them. */
export type Task<Result> = Generator<undefined, Result, void>

export class TimeSlicer {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs a task: its first slice at once, which ends most of them, the others each in a turn of its own. */
  run<Result>(task: Task<Result>): MaybePromise<Result> {
    const first = task.next()
    return first.done ? first.value : this.#continue(task)
  }

  async #continue<Result>(task: Task<Result>): Promise<Result> {
    for (;;) {
      await this.#turn()
      const slice = task.next()
      if (slice.done) return slice.value
    }
  }

  /** One at a time, first come, first served: a hundred tasks hold a round of the event loop no longer than one does. */
  #turn(): Promise<unknown> {
    this.#last = this.#last.then(() => setImmediate())
    return this.#last
  }
}
