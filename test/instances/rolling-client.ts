/** Clients that keep connections open to both instances, and leave one when it says so. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, calls, send, type TimedResponse } from './http.ts'
import type { Instance } from './instance.ts'
import { asLost, type Journal } from './response-checks.ts'

/** Milliseconds between two looks at `/ready`, and between two at whether any instance is there to be asked. */
const PROBE_INTERVAL = 100
const WAIT = 10

/** Where an instance is found. */
type Address = Pick<Instance, 'name' | 'url'>

interface Target {
  readonly instance: Address
  /** No new connection is made to it; those that it has not closed yet are used until it does. */
  leaving: boolean
}

/** What one client has: a connection to each instance, as long as that keeps it. */
export interface Connections {
  /** Sends it to the instance whose turn it is; whatever comes but the expected status is a failure. */
  send(call: Call, expected: number): Promise<void>
  /**
   * The same for a caller who judges the answer, and whose connections may rest so long that an instance closes them at the
   * timestamp of the next request: one that is left is not asked again.
   * @returns the instance's name with it.
   * @throws {Lost}
   */
  ask(call: Call): Promise<readonly [name: string, response: TimedResponse]>
  close(): void
}

const isConnected = (agent: Agent): boolean => Object.keys(agent.freeSockets).length > 0

export class Balancer {
  /** Answers that asked their client to connect anew. */
  told = 0
  opened = 0
  readonly #targets: readonly Target[]
  readonly #journal: Journal
  readonly #probes: Promise<void>[]
  #running = true

  constructor(instances: readonly Address[], journal: Journal) {
    this.#journal = journal
    this.#targets = instances.map(instance => ({ instance, leaving: false }))
    this.#probes = this.#targets.map(target => this.#probe(target))
  }

  /** @param to the instances that it asks; all of them by default. */
  connect(to?: readonly Address[]): Connections {
    const targets = this.#targets.filter(({ instance }) => to?.includes(instance) ?? true)
    const lines = targets.map(target => ({
      target,
      agent: new Agent({ keepAlive: true, maxSockets: 1 }),
    }))
    let turn = 0
    /** @param leaving whether a kept connection to an instance that is left is used as long as it is there. */
    const next = async (leaving: boolean) => {
      for (;;) {
        turn += 1
        const inTurn = lines.map((_, index) => lines[(turn + index) % lines.length] as (typeof lines)[number])
        const line = inTurn.find(({ target, agent }) => !target.leaving || (leaving && isConnected(agent)))
        if (line !== undefined) return line
        await sleep(WAIT)
      }
    }
    return {
      send: async (call, expected) => {
        const { target, agent } = await next(true)
        await this.#send(target, agent, call, expected)
      },
      ask: async call => {
        const { target, agent } = await next(false)
        return [target.instance.name, await this.#ask(target, agent, call)]
      },
      close: () => {
        for (const { agent } of lines) agent.destroy()
      },
    }
  }

  /** Whether an instance that was left is used again within so many milliseconds. */
  async uses(instance: Address, limit: number): Promise<boolean> {
    const end = performance.now() + limit
    const target = this.#targets.find(candidate => candidate.instance === instance)
    while (target?.leaving && performance.now() < end) await sleep(WAIT)
    return target?.leaving === false
  }

  async close(): Promise<void> {
    this.#running = false
    await Promise.all(this.#probes)
  }

  async #ask(target: Target, agent: Agent, call: Call): Promise<TimedResponse> {
    const { name, url } = target.instance
    if (!isConnected(agent)) this.opened += 1
    const response = await send(url, call, agent)
    this.#journal.response(name, call, response)
    if (response.headers.connection === 'close') {
      this.told += 1
      target.leaving = true
    }
    return response
  }

  async #send(target: Target, agent: Agent, call: Call, expected: number): Promise<void> {
    const { name } = target.instance
    try {
      const response = await this.#ask(target, agent, call)
      if (response.status !== expected) this.#journal.fault(name, call, `${response.status} ${response.text}`)
    } catch (error) {
      const { message, sent } = asLost(error)
      this.#journal.fault(name, call, `${sent ? 'sent and not answered' : 'refused'}: ${message}`)
    }
  }

  /** Ready again, or not any more, as a load balancer sees it. */
  async #probe(target: Target): Promise<void> {
    while (this.#running) {
      target.leaving = await send(target.instance.url, calls.ready(), false).then(
        ({ status }) => status !== 200,
        () => true,
      )
      await sleep(PROBE_INTERVAL)
    }
  }
}
