/** A client without a proxy: it knows both addresses, and retries on the other instance. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import { type Call, send, type TimedResponse } from './http.ts'
import type { Instance } from './instance.ts'
import { asLost, type Journal } from './response-checks.ts'

/** Milliseconds until a call without a response from any instance counts as failed, and between two attempts. */
const PATIENCE = 30_000
const RETRY = { min: 20, max: 120 }

export interface Definite {
  /** `null` when the time ended first, which the journal records as an error. */
  readonly response: TimedResponse | null
  /** Earlier attempts, with unknown effect. */
  readonly repeats: number
}

export class PairClient {
  /** Responses that were lost because their instance was killed. */
  lost = 0
  /** 503 responses, with the timestamps of the attempt. */
  readonly unavailable: TimedResponse[] = []
  readonly pair: readonly [Instance, Instance]
  readonly #journal: Journal
  readonly #random: Random
  readonly #agent = new Agent({ keepAlive: true })

  constructor(pair: readonly [Instance, Instance], journal: Journal, random: Random) {
    this.pair = pair
    this.#journal = journal
    this.#random = random
  }

  /** Sends one request to one instance. @returns `null` when the response is lost. */
  async attempt(instance: Instance, call: Call): Promise<TimedResponse | null> {
    try {
      const response = await send(instance.url, call, this.#agent)
      this.#journal.response(instance.name, call, response)
      if (response.status === 503) this.unavailable.push(response)
      return response
    } catch (error) {
      const { message, sentAt, lostAt } = asLost(error)
      this.lost += 1
      if (!instance.wasDown(sentAt, lostAt))
        this.#journal.failure(instance.name, call, `no response, though it ran: ${message}`)
      return null
    }
  }

  /** Alternates between the instances, or stays with the first, until one sends another response than 503. */
  async persist(call: Call, first = this.either(), stays = false): Promise<Definite> {
    const end = performance.now() + PATIENCE
    let by = first
    for (let repeats = 0; performance.now() < end; repeats += 1) {
      const response = await this.attempt(by, call)
      if (response !== null && response.status !== 503) return { response, repeats }
      if (!stays) by = by === this.pair[0] ? this.pair[1] : this.pair[0]
      await sleep(this.#random.integer(RETRY.min, RETRY.max))
    }
    this.#journal.failure('both', call, `no definite response within ${PATIENCE} ms`)
    return { response: null, repeats: 0 }
  }

  either(): Instance {
    return this.pair[this.#random.integer(0, 1) as 0 | 1]
  }

  close(): void {
    this.#agent.destroy()
  }
}
