/** Work of features that runs in every process, for as long as the service does. It shares what there is to do by leases of its own. */
import { setTimeout as sleep } from 'node:timers/promises'
import { endsWithin } from '#base/concurrency/ends-within'

/**
 * Runs until the signal is aborted. It is started again when it fails.
 * @typeParam Deps what the services of the feature are created with.
 */
export type BackgroundTask<Deps> = (deps: Deps, signal: AbortSignal) => Promise<void>

/** A task with its name, such as `webhooks.deliver`. */
export interface NamedTask {
  readonly name: string
  readonly run: (signal: AbortSignal) => Promise<void>
}

export interface BackgroundTasksDeps {
  readonly tasks: readonly NamedTask[]
  readonly onFailure: (task: string, error: unknown) => void
  /** Milliseconds for which `close` waits for tasks. */
  readonly closing: number
}

/** Milliseconds until a task that failed starts again. */
const RESTART = 1_000

export class BackgroundTasks {
  readonly #deps: BackgroundTasksDeps
  readonly #closing = new AbortController()
  #running: Promise<unknown> = Promise.resolve()

  constructor(deps: BackgroundTasksDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#running = Promise.all(this.#deps.tasks.map(task => this.#repeat(task)))
  }

  /** Aborts the tasks, and waits for them as long as there is time. */
  async close(): Promise<void> {
    this.#closing.abort()
    await endsWithin(this.#deps.closing, this.#running)
  }

  async #repeat({ name, run }: NamedTask): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await run(signal)
      } catch (error) {
        if (!signal.aborted) this.#deps.onFailure(name, error)
      }
      await sleep(RESTART, undefined, { ref: false, signal }).catch(() => undefined)
    }
  }
}
