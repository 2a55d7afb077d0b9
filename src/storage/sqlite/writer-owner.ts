/** Starts the writer thread, replaces it when it exits, and connects the event loops of this process to it. */
import { type EventEmitter, once } from 'node:events'
import { MessageChannel, type MessagePort, type Transferable, Worker } from 'node:worker_threads'
import { InvalidationPublisher } from './invalidation-ring.ts'
import type { OwnerMessage, WriterData } from './writer-protocol.ts'

/** Milliseconds until a thread that has exited is replaced. */
const RESTART_DELAY = 200

/** Called with a port to the thread, and again with a port to each thread that replaces it. */
export type Connect = (port: MessagePort) => void

/** Emits `exit` when the thread has ended, and `error` before that if an error has ended it. */
export interface WriterThread extends EventEmitter {
  postMessage(message: OwnerMessage, transferred?: readonly Transferable[]): void
}

export type StartWriter = (data: WriterData) => WriterThread

const startThread: StartWriter = workerData =>
  new Worker(new URL('./writer-thread.ts', import.meta.url), { workerData, execArgv: [] })

export class WriterOwner {
  readonly #data: WriterData
  readonly #startThread: StartWriter
  readonly #clients = new Set<Connect>()
  #thread: WriterThread | null = null
  #isClosed = false

  constructor(data: WriterData, start: StartWriter = startThread) {
    this.#data = data
    this.#startThread = start
    this.#start()
  }

  /** @returns removes the client, whose event loop has ended. */
  addClient(connect: Connect): () => void {
    this.#clients.add(connect)
    this.#connect(connect)
    return () => this.#clients.delete(connect)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const thread = this.#thread
    if (thread === null) return
    const exited = once(thread, 'exit')
    thread.postMessage(null)
    await exited
  }

  #start(): void {
    if (this.#isClosed) return
    this.#thread = this.#startThread(this.#data)
    // Without a listener, an error of the thread would end the process. Its clients notice that their ports close.
    this.#thread.on('error', () => undefined)
    this.#thread.on('exit', () => this.#handleExit())
    for (const connect of this.#clients) this.#connect(connect)
  }

  #connect(connect: Connect): void {
    if (this.#thread === null) return
    const { port1, port2 } = new MessageChannel()
    this.#thread.postMessage({ client: port1 }, [port1])
    connect(port2)
  }

  #handleExit(): void {
    this.#thread = null
    // Its last commits may not have been published.
    new InvalidationPublisher(this.#data.invalidations).publishEveryone()
    setTimeout(() => this.#start(), RESTART_DELAY)
  }
}
