/** Runs long reads in slices. Between two slices the event loop serves other requests. */
import { setImmediate } from 'node:timers/promises'
import type { MaybePromise } from '#base/maybe-promise'

/** A task that yields between its slices. */
export type SlicedTask<Result> = Generator<undefined, Result, void>

export class TimeSlicer {
  #lastTurn: Promise<unknown> = Promise.resolve()

  /** Runs the first slice at once, which completes most tasks. Each further slice waits for its turn. */
  run<Result>(task: SlicedTask<Result>): MaybePromise<Result> {
    const first = task.next()
    return first.done ? first.value : this.#continue(task)
  }

  async #continue<Result>(task: SlicedTask<Result>): Promise<Result> {
    for (;;) {
      await this.#turn()
      const slice = task.next()
      if (slice.done) return slice.value
    }
  }

  /** One slice of one task per round of the event loop, in order: a hundred tasks block a round no longer than one. */
  #turn(): Promise<unknown> {
    this.#lastTurn = this.#lastTurn.then(() => setImmediate())
    return this.#lastTurn
  }
}
