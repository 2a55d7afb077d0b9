/** Clients that keep connections open to both instances, and leave an instance when it closes or is not ready. */
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, calls, send, type TimedResponse } from './http.ts'
import type { Instance } from './instance.ts'
import { asLost, type Journal } from './response-checks.ts'

/** Milliseconds between two polls of `/ready`, and between two checks for an available instance. */
const PROBE_INTERVAL = 100
const WAIT = 10

/** The URL of an instance. */
type Address = Pick<Instance, 'name' | 'url'>

interface Target {
  readonly instance: Address
  /** No new connections are opened to it; open ones are used until it closes them. */
  leaving: boolean
}

/** The connections of one client: one per instance, as long as that keeps it. */
export interface Connections {
  /** Sends to the next instance in turn; any status but the expected one is an error. */
  send(call: Call, expected: number): Promise<void>
  /**
   * Like `call`, for a caller who checks the response, and whose connections may be idle for so long that an instance closes
   * them just when the next request is sent: the client does not retry on a closing instance.
   * @returns the response with the instance's name.
   * @throws {Lost}
   */
  ask(call: Call): Promise<readonly [name: string, response: TimedResponse]>
  close(): void
}

const isConnected = (agent: Agent): boolean => Object.keys(agent.freeSockets).length > 0

export class Balancer {
  /** Responses with `Connection: close`. */
  closed = 0
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

  /** @param to the instances that it uses; all by default. */
  connect(to?: readonly Address[]): Connections {
    const targets = this.#targets.filter(({ instance }) => to?.includes(instance) ?? true)
    const lines = targets.map(target => ({
      target,
      agent: new Agent({ keepAlive: true, maxSockets: 1 }),
    }))
    let turn = 0
    /** @param leaving whether open connections to a closing instance are still used. */
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
      this.closed += 1
      target.leaving = true
    }
    return response
  }

  async #send(target: Target, agent: Agent, call: Call, expected: number): Promise<void> {
    const { name } = target.instance
    try {
      const response = await this.#ask(target, agent, call)
      if (response.status !== expected)
        this.#journal.failure(name, call, `${response.status} ${response.text}`)
    } catch (error) {
      const { message, sent } = asLost(error)
      this.#journal.failure(name, call, `${sent ? 'sent without a response' : 'refused'}: ${message}`)
    }
  }

  /** Ready or not, as a load balancer sees it. */
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
