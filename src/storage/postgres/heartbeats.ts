/**
 * Heartbeats: statements on the connection that listens, which renew the lease of the process (`process-leases.ts`). The server sends what was
 * notified before a statement began ahead of the end of its response, so a response shows that nothing from before is missing.
 * (Notifications to itself would show it too, but each wakes every process that listens, and takes the server's lock of notifications.)
 */
import { LEASE } from './process-leases.ts'

/** Milliseconds between two heartbeats. */
export const HEARTBEAT_INTERVAL = 300

/** Milliseconds since the last heartbeat that came back was sent, from which on the connection counts as lost. */
const LOST = 5_000

export type HeartbeatStatus = 'onTime' | 'late' | 'lost'

export class Heartbeats {
  readonly #send: () => Promise<void>
  readonly #onStatus: (status: HeartbeatStatus) => void
  readonly #timer: NodeJS.Timeout
  /** When the last heartbeat that came back was sent, in milliseconds of `performance.now()`. */
  #sentAt = performance.now()
  #isSending = false
  /** Whether another heartbeat is due after the one that is being sent. */
  #isDue = false

  /**
   * Sends the first heartbeat.
   * @param send resolves when the heartbeat comes back.
   * @param onStatus called with `onTime` for every heartbeat that comes back in time, with `late` or `lost` at every interval at
   * which it applies, and with `lost` if a heartbeat fails.
   */
  constructor(send: () => Promise<void>, onStatus: (status: HeartbeatStatus) => void) {
    this.#send = send
    this.#onStatus = onStatus
    this.#timer = setInterval(() => this.#check(), HEARTBEAT_INTERVAL)
    void this.#beat()
  }

  /** Milliseconds since the last heartbeat that came back was sent. */
  get age(): number {
    return performance.now() - this.#sentAt
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#isDue = false
  }

  #check(): void {
    // One at a time: a heartbeat queued behind another would be late by its waiting time.
    if (this.#isSending) this.#isDue = true
    else void this.#beat()
    const { age } = this
    if (age >= LOST) this.#onStatus('lost')
    else if (age >= LEASE) this.#onStatus('late')
  }

  async #beat(): Promise<void> {
    this.#isSending = true
    try {
      do {
        this.#isDue = false
        const sentAt = performance.now()
        await this.#send()
        this.#sentAt = sentAt
        if (this.age < LEASE) this.#onStatus('onTime')
      } while (this.#isDue)
    } catch {
      this.#onStatus('lost')
    } finally {
      this.#isSending = false
    }
  }
}
