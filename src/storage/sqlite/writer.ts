/** The event loop's side of the writer thread: queues calls, sends them in batches, and settles their promises. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { ServiceError } from '../../errors.ts'
import { DURATIONS, Histogram } from '../../statistics/histogram.ts'
import { OperationError } from '../operations/feature-operation.ts'
import type { Operations, ResultOf } from '../operations/operations.ts'
import type { WriterStatistics } from '../statistics.ts'
import type { FileProblem } from './database-file.ts'
import type { HandWritten } from './operations.ts'
import type { Call, Failure, Outcome, WriterData, WriterMessage } from './writer-protocol.ts'

/** Calls in one transaction: enough to share an fsync, and few enough to post in well under a millisecond. */
const MAX_BATCH = 500

/** Upper bounds for the number of calls in a batch. */
const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, MAX_BATCH]

/** Calls that may wait for a slow disk. Further calls fail at once with `overloaded`. */
const MAX_WAITING = 20_000

/** Milliseconds until a thread that has exited is replaced. */
const RESTART_DELAY = 200

/** Milliseconds for which the result of the last write replaces a probe. */
const PROBE_VALIDITY = 1_000

interface PendingCall {
  readonly call: Call
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const toError = ({ message, code }: Failure): Error => Object.assign(new Error(message), { code })

/** The error of one call. */
const toCallError = (failure: Failure): Error => {
  if (failure.code !== 'OPERATION') return storeUnavailable(toError(failure))
  const error = new OperationError(failure.message)
  if (failure.stack !== undefined) error.stack = failure.stack
  return error
}

/** For failures of the store itself: a full disk, a lock that is held too long, a broken file. */
const storeUnavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

export interface WriterEvents {
  /** Called with each user and admin key whose cached state a committed write made stale, before the write is acknowledged. */
  readonly invalidate: (id: string) => void
  /** Called when another process has changed the database, or a thread that has exited may have. */
  readonly invalidateAll: () => void
  /** Called with the file's current problem, as the thread sees it; `null` when there is none. */
  readonly onFileProblem: (problem: FileProblem | null) => void
}

export class Writer {
  readonly #data: WriterData
  readonly #events: WriterEvents
  #isUnavailable = false
  /** The error of the last write, or `null` if it succeeded, and its end (milliseconds of `performance.now()`). */
  #lastWrite: { readonly at: number; readonly error: ServiceError | null } | null = null
  #probe: Promise<void> | null = null
  #thread: Worker | null = null
  #isClosed = false
  #waiting: PendingCall[] = []
  /** The calls that the thread is running. */
  #batch: PendingCall[] = []
  /** When it was sent, in milliseconds of `performance.now()`. */
  #sentAt = 0
  readonly #batchSizes = new Histogram(BATCH_SIZES)
  readonly #commits = new Histogram(DURATIONS)

  constructor(data: WriterData, events: WriterEvents) {
    this.#data = data
    this.#events = events
    this.#thread = this.#start()
  }

  get statistics(): WriterStatistics {
    return {
      waiting: this.#waiting.length,
      batchSizes: this.#batchSizes.value,
      commits: this.#commits.value,
    }
  }

  /**
   * Runs an operation. The promise resolves when its transaction is synced to the file that a restart would open.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  run<Name extends keyof Operations>(
    operation: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ResultOf<Name>> {
    return this.#call({ operation, args }) as Promise<ResultOf<Name>>
  }

  /** As {@link run}, for an operation that is written by hand for this engine. */
  runHandWritten<Name extends keyof HandWritten>(
    operation: Name,
    ...args: Parameters<HandWritten[Name]>
  ): Promise<ReturnType<HandWritten[Name]>['result']> {
    return this.#call({ operation, args }) as Promise<ReturnType<HandWritten[Name]>['result']>
  }

  /** @param isUnavailable whether calls fail at once, because a restart would open another file. */
  setUnavailable(isUnavailable: boolean): void {
    this.#isUnavailable = isUnavailable
  }

  /**
   * Resolves when the store takes writes: the last write succeeded within a second, or else a small write succeeds.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async probe(): Promise<void> {
    if (this.#isUnavailable) throw new ServiceError('storeUnavailable')
    const last = this.#lastWrite
    if (last !== null && performance.now() - last.at < PROBE_VALIDITY) {
      if (last.error !== null) throw last.error
      return
    }
    this.#probe ??= this.runHandWritten('probe').finally(() => {
      this.#probe = null
    })
    await this.#probe
  }

  /** Waits for all calls, then ends the thread. */
  async close(): Promise<void> {
    // Calls run in order, so all earlier calls are settled with this one. A failure leaves nothing to wait for.
    await this.runHandWritten('barrier').catch(() => undefined)
    this.#isClosed = true
    const thread = this.#thread
    if (thread === null) return
    const exited = once(thread, 'exit')
    thread.postMessage(null)
    await exited
  }

  #start(): Worker {
    const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), {
      workerData: this.#data,
      execArgv: [],
    })
    let reason: unknown = new Error('The writer thread ended')
    thread.on('message', (message: WriterMessage) => this.#receive(message))
    thread.on('error', error => {
      reason = error
    })
    thread.on('exit', () => this.#handleExit(reason))
    return thread
  }

  /** As {@link run}, for an operation of a feature. @param operation see `operationName`. */
  runFeature(operation: string, args: readonly unknown[]): Promise<unknown> {
    return this.#call({ operation, args })
  }

  #call(call: Call): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(storeUnavailable(new Error('The store is closed')))
    if (this.#isUnavailable) return Promise.reject(new ServiceError('storeUnavailable'))
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(new ServiceError('overloaded'))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.push({ call, resolve, reject })
    if (this.#batch.length === 0) this.#send()
    return promise
  }

  #send(): void {
    if (this.#thread === null) return
    this.#batch = this.#waiting.splice(0, MAX_BATCH)
    if (this.#batch.length === 0) return
    this.#batchSizes.observe(this.#batch.length)
    this.#sentAt = performance.now()
    this.#thread.postMessage(this.#batch.map(({ call }) => call))
  }

  #receive(message: WriterMessage): void {
    if (message.type === 'changedElsewhere') return this.#events.invalidateAll()
    if (message.type === 'fileProblem') return this.#events.onFileProblem(message.problem)
    if (message.type === 'failed') this.#recordWrite(storeUnavailable(toError(message.failure)))
    else if (message.hasWritten) {
      this.#commits.observeSince(this.#sentAt)
      this.#recordWrite(null)
    }
    const batch = this.#batch
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome: Outcome = message.type === 'failed' ? message : (message.outcomes[index] as Outcome)
      if ('failure' in outcome) {
        reject(
          message.type === 'failed'
            ? storeUnavailable(toError(outcome.failure))
            : toCallError(outcome.failure),
        )
        continue
      }
      const { result, evicts } = outcome
      for (const id of evicts ?? []) this.#events.invalidate(id)
      resolve(result)
    }
    this.#send()
  }

  #recordWrite(error: ServiceError | null): void {
    this.#lastWrite = { at: performance.now(), error }
  }

  /** Fails the current batch, since it is not known whether it was committed, and replaces the thread. */
  #handleExit(reason: unknown): void {
    this.#thread = null
    if (this.#batch.length > 0) {
      this.#recordWrite(storeUnavailable(reason))
      this.#events.invalidateAll()
    }
    for (const { reject } of this.#batch) reject(storeUnavailable(reason))
    this.#batch = []
    // Also without calls, because the thread detects changes by other processes.
    if (!this.#isClosed) setTimeout(() => this.#restart(), RESTART_DELAY)
  }

  #restart(): void {
    this.#thread = this.#start()
    this.#send()
  }
}
