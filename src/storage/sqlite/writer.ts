/** The event loop's side of the writer thread: collects calls, hands them over a batch at a time, settles their promises. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { ServiceError } from '../../errors.ts'
import type { OpenedFile, Problem } from './database-file.ts'
import type { Operations } from './operations.ts'
import type { Call, Failure, Outcome, WriterMessage } from './writer-protocol.ts'

/** Calls in one transaction: enough to share an fsync well, few enough to hand over in well under a millisecond. */
const MAX_BATCH = 500

/** Calls that may wait for a slow disk; whoever comes later is told so at once. */
const MAX_WAITING = 20_000

/** Milliseconds until a thread that was lost is replaced. */
const RESTART_DELAY = 200

/** Milliseconds for which the last write says whether the store takes writes. */
const PROOF_GOOD_FOR = 1_000

interface Waiting {
  readonly call: Call
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const toError = ({ message, code }: Failure): Error => Object.assign(new Error(message), { code })

/** The store's own failures (full disk, lock held too long, broken file) are 503, and never the caller's fault. */
const unavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

export interface WriterEvents {
  /** A committed write made a user's cached state stale; called before the write is acknowledged. */
  readonly onInvalidated: (userId: string) => void
  /** Another process has changed the database, or a lost thread may have. */
  readonly onChangedElsewhere: () => void
  /** What the thread finds wrong with the file, or that nothing is any more. */
  readonly onProblem: (problem: Problem | null) => void
}

export class Writer {
  readonly #file: OpenedFile
  readonly #events: WriterEvents
  #isRefusing = false
  /** How the last write ended, with the error if it failed, and when (milliseconds of `performance.now()`). */
  #lastWrite: { readonly at: number; readonly error: ServiceError | null } | null = null
  #proof: Promise<void> | null = null
  #thread: Worker | null = null
  #closed = false
  #waiting: Waiting[] = []
  /** What the thread is at work on. */
  #batch: Waiting[] = []

  constructor(file: OpenedFile, events: WriterEvents) {
    this.#file = file
    this.#events = events
    this.#thread = this.#start()
  }

  /**
   * Runs an operation. The promise resolves when its transaction is on disk, in the file that a restart would open.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  run<Name extends keyof Operations>(
    operation: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ReturnType<Operations[Name]>['result']> {
    if (this.#closed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#isRefusing) return Promise.reject(new ServiceError('storeUnavailable'))
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(new ServiceError('overloaded'))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.push({ call: { operation, args }, resolve, reject })
    if (this.#batch.length === 0) this.#send()
    return promise as Promise<ReturnType<Operations[Name]>['result']>
  }

  /** Whether nothing is written any more: the file is not the one that a restart would open. */
  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing
  }

  /**
   * Resolves when the last write succeeded a timestamp ago; else a small one is tried, at most once a second.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  async prove(): Promise<void> {
    if (this.#isRefusing) throw new ServiceError('storeUnavailable')
    const last = this.#lastWrite
    if (last !== null && performance.now() - last.at < PROOF_GOOD_FOR) {
      if (last.error !== null) throw last.error
      return
    }
    this.#proof ??= this.run('prove').finally(() => {
      this.#proof = null
    })
    await this.#proof
  }

  /** Waits for what was handed over, then ends the thread. */
  async close(): Promise<void> {
    // Calls run in their order, so all before this one are settled with it. A thread that fails now has nothing to close.
    await this.run('barrier').catch(() => undefined)
    this.#closed = true
    const thread = this.#thread
    if (thread === null) return
    const exited = once(thread, 'exit')
    thread.postMessage(null)
    await exited
  }

  #start(): Worker {
    const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), {
      workerData: this.#file,
      execArgv: [],
    })
    let reason: unknown = new Error('The writer thread ended')
    thread.on('message', (message: WriterMessage) => this.#receive(message))
    thread.on('error', error => {
      reason = error
    })
    thread.on('exit', () => this.#lose(reason))
    return thread
  }

  #send(): void {
    if (this.#thread === null) return
    this.#batch = this.#waiting.splice(0, MAX_BATCH)
    if (this.#batch.length === 0) return
    this.#thread.postMessage(this.#batch.map(({ call }) => call))
  }

  #receive(message: WriterMessage): void {
    if (message.type === 'changedElsewhere') return this.#events.onChangedElsewhere()
    if (message.type === 'file') return this.#events.onProblem(message.problem)
    if (message.type === 'failed') this.#noteWrite(unavailable(toError(message.failure)))
    else if (message.hasWritten) this.#noteWrite(null)
    const batch = this.#batch
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome: Outcome = message.type === 'failed' ? message : (message.outcomes[index] as Outcome)
      if ('failure' in outcome) {
        reject(unavailable(toError(outcome.failure)))
        continue
      }
      const { result, invalidates } = outcome.write
      if (invalidates !== null) this.#events.onInvalidated(invalidates)
      resolve(result)
    }
    this.#send()
  }

  #noteWrite(error: ServiceError | null): void {
    this.#lastWrite = { at: performance.now(), error }
  }

  /** The thread is gone: whether its batch was committed is not known, so nobody is told that it was. */
  #lose(reason: unknown): void {
    this.#thread = null
    if (this.#batch.length > 0) {
      this.#noteWrite(unavailable(reason))
      this.#events.onChangedElsewhere()
    }
    for (const { reject } of this.#batch) reject(unavailable(reason))
    this.#batch = []
    // Also without work: the thread is who notices changes made elsewhere.
    if (!this.#closed) setTimeout(() => this.#resume(), RESTART_DELAY)
  }

  #resume(): void {
    this.#thread = this.#start()
    this.#send()
  }
}
