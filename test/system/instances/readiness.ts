/** Polls `/ready` of one instance. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { calls, send } from './http.ts'
import type { Instance, Span } from './instance.ts'
import { asLost, type Journal } from './response-checks.ts'

/** Milliseconds between two polls. */
const INTERVAL = 25

/** Milliseconds within which the connections of a stopped database end. */
const ENDING = 250

interface Sample {
  readonly status: number
  readonly sentAt: number
  readonly respondedAt: number
}

export class Readiness {
  readonly instance: Instance
  readonly #journal: Journal
  readonly #agent = new Agent({ keepAlive: true })
  readonly #samples: Sample[] = []
  readonly #end: Promise<void>
  #running = true

  constructor(instance: Instance, journal: Journal) {
    this.instance = instance
    this.#journal = journal
    this.#end = this.#watch()
  }

  /** Resolves with the timestamp of the first 200 that was requested from `from` on; `null` after the limit. */
  async since(from: number, limit: number): Promise<number | null> {
    while (performance.now() < from + limit) {
      const ready = this.#samples.find(({ sentAt, status }) => sentAt >= from && status === 200)
      if (ready !== undefined) return ready.respondedAt
      await sleep(INTERVAL)
    }
    return null
  }

  /**
   * @returns errors of readiness while the database was down.
   * @param span from before the outage until its end.
   * @param surely milliseconds from the span's beginning in which the database is certainly down.
   */
  faultsDuring(span: Span, surely: number): string[] {
    const { name } = this.instance
    const seen = this.#samples.filter(
      ({ sentAt, respondedAt }) => sentAt >= span.from && respondedAt <= span.to,
    )
    const first = seen.find(({ status }) => status === 503)
    if (first === undefined) {
      if (this.instance.wasDown(span.from, span.to)) return []
      return [`${name} /ready: never 503 while the database was away (${seen.map(({ status }) => status)})`]
    }
    return seen
      .filter(
        ({ status, sentAt, respondedAt }) =>
          status === 200 && sentAt > first.respondedAt + ENDING && respondedAt < span.from + surely,
      )
      .map(() => `${name} /ready: 200 while the database was away`)
  }

  async stop(): Promise<void> {
    this.#running = false
    await this.#end
    this.#agent.destroy()
  }

  async #watch(): Promise<void> {
    const call = calls.ready()
    while (this.#running) {
      try {
        const response = await send(this.instance.url, call, this.#agent)
        this.#journal.response(this.instance.name, call, response)
        this.#samples.push(response)
      } catch (error) {
        const { message, sentAt, lostAt } = asLost(error)
        if (!this.instance.wasDown(sentAt, lostAt))
          this.#journal.failure(this.instance.name, call, `no response, though it ran: ${message}`)
      }
      await sleep(INTERVAL)
    }
  }
}
