/** The event loop's side of the writer thread: collects calls, hands them over a batch at a time, settles their promises. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { ServiceError } from '../../errors.ts'
import type { Operations } from './operations.ts'
import type { Call, Failure, Outcome, WriterData, WriterMessage } from './writer-protocol.ts'

/** Calls in one transaction: enough to share an fsync well, few enough to hand over in well under a millisecond. */
const MAX_BATCH = 500

/** Calls that may wait for a slow disk; whoever comes later is told so at once. */
const MAX_WAITING = 20_000

/** Milliseconds until a thread that was lost is replaced. */
const RESTART_DELAY = 200

interface Waiting {
  readonly call: Call
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

const toError = ({ message, code }: Failure): Error => Object.assign(new Error(message), { code })

/** The store's own failures (full disk, lock held too long, broken file) are 503, and never the caller's fault. */
const unavailable = (cause: unknown): ServiceError => new ServiceError('storeUnavailable', { cause })

export class Writer {
  readonly #data: WriterData
  readonly #onChangedElsewhere: () => void
  #thread: Worker | null = null
  #closed = false
  #waiting: Waiting[] = []
  /** What the thread is at work on. */
  #batch: Waiting[] = []

  constructor(file: string, onChangedElsewhere: () => void) {
    this.#data = { file }
    this.#onChangedElsewhere = onChangedElsewhere
    this.#thread = this.#start()
  }

  /**
   * Runs an operation. The promise resolves when its transaction is on disk.
   * @throws {ServiceError} `storeUnavailable`, `overloaded`
   */
  run<Name extends keyof Operations>(
    operation: Name,
    ...args: Parameters<Operations[Name]>
  ): Promise<ReturnType<Operations[Name]>> {
    if (this.#closed) return Promise.reject(unavailable(new Error('The store is closed')))
    if (this.#waiting.length >= MAX_WAITING) return Promise.reject(new ServiceError('overloaded'))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    this.#waiting.push({ call: { operation, args }, resolve, reject })
    if (this.#batch.length === 0) this.#send()
    return promise as Promise<ReturnType<Operations[Name]>>
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
      workerData: this.#data,
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
    if (message.type === 'changedElsewhere') {
      this.#onChangedElsewhere()
      return
    }
    const batch = this.#batch
    for (const [index, { resolve, reject }] of batch.entries()) {
      const outcome: Outcome = message.type === 'failed' ? message : (message.outcomes[index] as Outcome)
      if ('failure' in outcome) reject(unavailable(toError(outcome.failure)))
      else resolve(outcome.value)
    }
    this.#send()
  }

  /** The thread is gone: whether its batch was committed is not known, so nobody is told that it was. */
  #lose(reason: unknown): void {
    this.#thread = null
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
