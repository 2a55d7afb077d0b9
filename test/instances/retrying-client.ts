/** A client without a proxy: it knows both addresses, and what one instance does not answer it asks the other. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import { type Call, send, type TimedResponse } from './http.ts'
import type { Instance } from './instance.ts'
import { asLost, type Journal } from './response-checks.ts'

/** Milliseconds until a call that no instance answers counts as failed, and between two attempts at it. */
const PATIENCE = 30_000
const RETRY = { min: 20, max: 120 }

export interface Definite {
  /** `null` when patience ended first, which the journal has as a fault. */
  readonly response: TimedResponse | null
  /** Attempts before it: their effect is unknown. */
  readonly repeats: number
}

export class PairClient {
  /** Answers that never came: their instance was killed. */
  lost = 0
  /** 503, with the timestamps of the attempt. */
  readonly unavailable: TimedResponse[] = []
  readonly #pair: readonly [Instance, Instance]
  readonly #journal: Journal
  readonly #random: Random
  readonly #agent = new Agent({ keepAlive: true })

  constructor(pair: readonly [Instance, Instance], journal: Journal, random: Random) {
    this.#pair = pair
    this.#journal = journal
    this.#random = random
  }

  /** Asks one instance once. @returns `null` when the answer is lost. */
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
        this.#journal.fault(instance.name, call, `no answer, though it ran: ${message}`)
      return null
    }
  }

  /** Asks either instance, then the other, until one gives another answer than 503. */
  async persist(call: Call, first = this.#random.integer(0, 1)): Promise<Definite> {
    const end = performance.now() + PATIENCE
    for (let repeats = 0; performance.now() < end; repeats += 1) {
      const response = await this.attempt(this.#pair[((first + repeats) % 2) as 0 | 1], call)
      if (response !== null && response.status !== 503) return { response, repeats }
      await sleep(this.#random.integer(RETRY.min, RETRY.max))
    }
    this.#journal.fault('both', call, `no definite answer within ${PATIENCE} ms`)
    return { response: null, repeats: 0 }
  }

  either(): Instance {
    return this.#pair[this.#random.integer(0, 1) as 0 | 1]
  }

  close(): void {
    this.#agent.destroy()
  }
}
