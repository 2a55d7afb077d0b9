/**
 * Metrics of several workers (`WORKERS`): the primary asks every worker for its values, and adds them up. A worker asks the
 * primary for the sum.
 */
import { PendingResponses } from '#base/concurrency/pending-responses'
import { ServiceError } from '#base/errors'
import type { MetricDeclarations } from '#base/statistics/metric'
import { aggregate, countsOf, type Snapshot, sample } from '#base/statistics/snapshot'
import { toText } from '#base/statistics/text-format'
import type { Channel, ChannelToPrimary } from '../workers/channel.ts'
import { processMetrics } from './process-metrics.ts'

/** Milliseconds that the primary waits for workers, which check their store within one second; and a worker for the primary. */
const WORKER_LIMIT = 2_000
const PRIMARY_LIMIT = 4_000

type Message =
  /** Sent to a worker. */
  | { readonly metrics: 'collect'; readonly id: number }
  | { readonly metrics: 'text'; readonly id: number; readonly text: string }
  /** Sent to the primary. */
  | { readonly metrics: 'collected'; readonly id: number; readonly snapshot: Snapshot }
  | { readonly metrics: 'aggregate'; readonly id: number }

const isMessage = (message: unknown): message is Message =>
  typeof message === 'object' && message !== null && 'metrics' in message

/** Runs in a worker. */
export interface WorkerChannel {
  /** Whether the worker is a thread of the primary's process, whose metrics the primary has. */
  readonly isThread: boolean
  /** @param collect returns the values of this worker. */
  onCollect(collect: () => Promise<Snapshot>): void
  /** The text of all workers. @throws {ServiceError} `overloaded` if the primary does not respond in time. */
  text(): Promise<string>
}

/** A response that is lost is noticed by its requester. */
export const openWorkerChannel = (channel: ChannelToPrimary): WorkerChannel => {
  const sendToPrimary = (message: Message): void => channel.send(message)
  const responses = new PendingResponses<string>()
  let collect: (() => Promise<Snapshot>) | null = null
  const answer = async (id: number): Promise<void> => {
    const snapshot = collect === null ? {} : await collect()
    sendToPrimary({ metrics: 'collected', id, snapshot })
  }
  channel.onMessage(message => {
    if (!isMessage(message)) return
    if (message.metrics === 'collect') void answer(message.id)
    else if (message.metrics === 'text') responses.receive(message.id, message.text)
  })
  return {
    isThread: channel.isThread,
    onCollect(newCollect) {
      collect = newCollect
    },
    async text() {
      const text = await responses.request(id => sendToPrimary({ metrics: 'aggregate', id }), PRIMARY_LIMIT)
      if (text === null) throw new ServiceError('overloaded')
      return text
    },
  }
}

/** Runs in the primary. */
export class WorkerMetrics {
  readonly #declarations: MetricDeclarations
  /** The last values of each worker; `null` before its first response. */
  readonly #workers = new Map<Channel, Snapshot | null>()
  readonly #responses = new PendingResponses<true>()
  /** The counts of workers that have ended. Without them sums would decrease, which Prometheus takes for a restart. */
  #ended: Snapshot = {}
  #timeouts = 0
  #collecting: Promise<string> | null = null

  /** @param declarations of the core and of features. */
  constructor(declarations: MetricDeclarations) {
    this.#declarations = declarations
  }

  add(worker: Channel): void {
    this.#workers.set(worker, null)
    worker.onMessage(message => {
      if (isMessage(message)) this.#receive(worker, message)
    })
  }

  remove(worker: Channel): void {
    const last = this.#workers.get(worker)
    if (last) this.#ended = aggregate(this.#declarations, [this.#ended, countsOf(this.#declarations, last)])
    this.#workers.delete(worker)
  }

  /** The text of all workers. One collection at a time, however many clients ask. */
  text(): Promise<string> {
    this.#collecting ??= this.#collect().finally(() => {
      this.#collecting = null
    })
    return this.#collecting
  }

  #receive(worker: Channel, message: Message): void {
    if (message.metrics === 'collected') {
      if (this.#workers.has(worker)) this.#workers.set(worker, message.snapshot)
      this.#responses.receive(message.id, true)
    } else if (message.metrics === 'aggregate') void this.#answer(worker, message.id)
  }

  async #answer(worker: Channel, id: number): Promise<void> {
    const text = await this.text()
    worker.send({ metrics: 'text', id, text } satisfies Message)
  }

  /** A worker that does not respond in time counts with its last values, but without its gauges. */
  async #collect(): Promise<string> {
    const responded = new Set<Channel>()
    const ask = async (worker: Channel): Promise<void> => {
      const request = (id: number): void => worker.send({ metrics: 'collect', id } satisfies Message)
      if (await this.#responses.request(request, WORKER_LIMIT)) responded.add(worker)
      else this.#timeouts += 1
    }
    await Promise.all([...this.#workers.keys()].filter(worker => worker.isOpen).map(ask))
    const snapshots = [...this.#workers].map(([worker, last]) =>
      responded.has(worker) ? (last ?? {}) : countsOf(this.#declarations, last ?? {}),
    )
    const own: Snapshot = {
      gatehouse_workers: [sample(this.#workers.size)],
      gatehouse_worker_timeouts_total: [sample(this.#timeouts)],
      // Its heap serves no requests: the limit would hide that those of the workers are full.
      ...processMetrics(),
    }
    return toText(this.#declarations, aggregate(this.#declarations, [this.#ended, ...snapshots, own]))
  }
}
