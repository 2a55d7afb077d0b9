/** Starts the writer thread, replaces it when it exits, and connects the event loops of this process to it. */
import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { InvalidationPublisher } from './invalidation-ring.ts'
import type { OwnerMessage, WriterData } from './writer-protocol.ts'

/** Milliseconds until a thread that has exited is replaced. */
const RESTART_DELAY = 200

/** Called with a port to the thread, and again with a port to each thread that replaces it. */
export type Connect = (port: MessagePort) => void

export class WriterOwner {
  readonly #data: WriterData
  readonly #clients = new Set<Connect>()
  #thread: Worker | null = null
  #isClosed = false

  constructor(data: WriterData) {
    this.#data = data
    this.#start()
  }

  /** @returns removes the client, whose event loop has ended. */
  addClient(connect: Connect): () => void {
    this.#clients.add(connect)
    this.#connect(connect)
    return () => this.#clients.delete(connect)
  }

  /** Ends the thread, when all clients are closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    const thread = this.#thread
    if (thread === null) return
    const exited = once(thread, 'exit')
    thread.postMessage(null satisfies OwnerMessage)
    await exited
  }

  #start(): void {
    if (this.#isClosed) return
    this.#thread = new Worker(new URL('./writer-thread.ts', import.meta.url), {
      workerData: this.#data,
      execArgv: [],
    })
    // Without a listener, an error of the thread would end the process. Its clients notice that their ports close.
    this.#thread.on('error', () => undefined)
    this.#thread.on('exit', () => this.#handleExit())
    for (const connect of this.#clients) this.#connect(connect)
  }

  #connect(connect: Connect): void {
    if (this.#thread === null) return
    const { port1, port2 } = new MessageChannel()
    this.#thread.postMessage({ client: port1 } satisfies OwnerMessage, [port1])
    connect(port2)
  }

  #handleExit(): void {
    this.#thread = null
    // Its last commits may not have been published.
    new InvalidationPublisher(this.#data.invalidations).publishEveryone()
    setTimeout(() => this.#start(), RESTART_DELAY)
  }
}
