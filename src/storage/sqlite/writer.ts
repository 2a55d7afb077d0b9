/** An event loop's side of the writer thread: queues calls, sends them in batches, and settles their promises. */
import type { MessagePort } from 'node:worker_threads'
import { ServiceError } from '#base/errors'
import { DURATIONS, Histogram } from '#base/statistics/histogram'
import { OperationError } from '../operations/feature-operation.ts'
import type { WriterStatistics } from '../statistics.ts'
import { storeError } from './database.ts'
import type { FileProblem } from './database-file.ts'
import {
  BARRIER,
  type Call,
  type Failure,
  type Outcome,
  PROBE,
  type WriterMessage,
} from './writer-protocol.ts'

/** Calls in one transaction: enough to share an fsync, and few enough to post in well under a millisecond. */
const MAX_BATCH = 500

const BATCH_SIZES = [1, 2, 5, 10, 20, 50, 100, 200, MAX_BATCH]

/** Further calls fail at once with `overloaded`. */
const MAX_WAITING = 20_000

/** Milliseconds for which the result of the last write replaces a probe. */
const PROBE_VALIDITY = 1_000

interface PendingCall {
  readonly call: Call
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const toError = ({ message, code }: Failure): Error => Object.assign(new Error(message), { code })

const toCallError = (failure: Failure): Error => {
  if (failure.code !== 'OPERATION') return storeError(toError(failure))
  const error = new OperationError(failure.message)
  if (failure.stack !== undefined) error.stack = failure.stack
  return error
}

/** The error for a full disk, a lock that is held too long, a broken file. */
const storeUnavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

export interface WriterEvents {
  /** Called before a write is acknowledged. */
  readonly deliverInvalidations: () => void
  /** As the thread sees it; `null` when there is none. */
  readonly onFileProblem: (problem: FileProblem | null) => void
}

export class Writer {
  readonly #events: WriterEvents
  #isUnavailable = false
  /** The error of the last write, or `null` if it succeeded, and its end (milliseconds of `performance.now()`). */
  #lastWrite: { readonly at: number; readonly error: ServiceError | null } | null = null
  #probe: Promise<unknown> | null = null
  #port: MessagePort | null = null
  #isClosed = false
  #waiting: PendingCall[] = []
  #batch: PendingCall[] = []
  #sentAt = 0
  readonly #batchSizes = new Histogram(BATCH_SIZES)
  readonly #commits = new Histogram(DURATIONS)

  constructor(events: WriterEvents) {
    this.#events = events
  }

  connect(port: MessagePort): void {
    this.#port = port
    port.on('message', (message: WriterMessage) => this.#receive(message))
    port.on('close', () => this.#handleExit(port))
    this.#send()
  }

  get statistics(): WriterStatistics {
    return {
      waiting: this.#waiting.length,
      batchSizes: this.#batchSizes.value,
      commits: this.#commits.value,
    }
  }

  /** Resolves when the transaction is synced. @throws {ServiceError} `storeUnavailable`, `overloaded` */
  run(operation: string, args: readonly unknown[]): Promise<unknown> {
    return this.#call({ operation, args })
  }

  /** Calls fail at once while a restart would open another file. */
  setUnavailable(isUnavailable: boolean): void {
    this.#isUnavailable = isUnavailable
  }

  /** Resolves if the last write succeeded within a second, or a small one does. @throws {ServiceError} `storeUnavailable`, `overloaded` */
  async probe(): Promise<void> {
    if (this.#isUnavailable) throw new ServiceError('storeUnavailable')
    const last = this.#lastWrite
    if (last !== null && performance.now() - last.at < PROBE_VALIDITY) {
      if (last.error !== null) throw last.error
      return
    }
    this.#probe ??= this.run(PROBE, []).finally(() => {
      this.#probe = null
    })
    await this.#probe
  }

  async close(): Promise<void> {
    // Calls run in order. A failure leaves nothing to wait for.
    await this.run(BARRIER, []).catch(() => undefined)
    this.#isClosed = true
    this.#port?.close()
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
    if (this.#port === null) return
    this.#batch = this.#waiting.splice(0, MAX_BATCH)
    if (this.#batch.length === 0) return
    this.#batchSizes.observe(this.#batch.length)
    this.#sentAt = performance.now()
    this.#port.postMessage(this.#batch.map(({ call }) => call))
  }

  #receive(message: WriterMessage): void {
    if (message.type === 'fileProblem') return this.#events.onFileProblem(message.problem)
    if (message.type === 'failed') this.#recordWrite(storeUnavailable(toError(message.failure)))
    else if (message.hasWritten) {
      this.#commits.observeSince(this.#sentAt)
      this.#recordWrite(null)
    }
    this.#events.deliverInvalidations()
    const batch = this.#batch
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome: Outcome = message.type === 'failed' ? message : (message.outcomes[index] as Outcome)
      if ('result' in outcome) resolve(outcome.result)
      else if (message.type === 'failed') reject(storeUnavailable(toError(outcome.failure)))
      else reject(toCallError(outcome.failure))
    }
    this.#send()
  }

  #recordWrite(error: ServiceError | null): void {
    this.#lastWrite = { at: performance.now(), error }
  }

  /** Fails the current batch, since it is not known whether it was committed. What waits is for the next thread. */
  #handleExit(port: MessagePort): void {
    if (this.#port !== port) return
    this.#port = null
    if (this.#batch.length === 0) return
    const error = storeUnavailable(new Error('The writer thread ended'))
    this.#recordWrite(error)
    for (const { reject } of this.#batch) reject(error)
    this.#batch = []
  }
}
