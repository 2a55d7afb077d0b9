/** Heartbeats: notifications that an instance sends to itself through the database, to measure whether they arrive in time. */

/** Milliseconds between two heartbeats. */
export const HEARTBEAT_INTERVAL = 300

/**
 * Milliseconds since the last received heartbeat was sent: from LATE on, notifications are late; from LOST on, the connection
 * counts as lost. Checked every interval, so that a missed notification is detected within 850 ms.
 */
const LATE = 550
const LOST = 5_000

export type HeartbeatStatus = 'onTime' | 'late' | 'lost'

export class Heartbeats {
  readonly #send: (text: string) => Promise<unknown>
  readonly #onStatus: (status: HeartbeatStatus) => void
  readonly #timer: NodeJS.Timeout
  /** When the last received heartbeat was sent, in milliseconds of `performance.now()`. */
  #sentAt = performance.now()
  #isSending = false
  /** Whether another heartbeat is due after the one that is being sent. */
  #isDue = false

  /**
   * Sends the first heartbeat.
   * @param send sends this text through the database, which must arrive at {@link receive}.
   * @param onStatus called with `onTime` for every heartbeat that arrives in time, with `late` or `lost` at every interval at
   * which it applies, and with `lost` if a heartbeat cannot be sent.
   */
  constructor(send: (text: string) => Promise<unknown>, onStatus: (status: HeartbeatStatus) => void) {
    this.#send = send
    this.#onStatus = onStatus
    this.#timer = setInterval(() => this.#check(), HEARTBEAT_INTERVAL)
    void this.#beat()
  }

  /** Milliseconds since the last heartbeat that arrived was sent. */
  get age(): number {
    return performance.now() - this.#sentAt
  }

  /** @param text of a heartbeat: the time at which it was sent. */
  receive(text: string): void {
    this.#sentAt = Number(text)
    if (this.age < LATE) this.#onStatus('onTime')
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
    else if (age >= LATE) this.#onStatus('late')
  }

  async #beat(): Promise<void> {
    this.#isSending = true
    try {
      do {
        this.#isDue = false
        await this.#send(String(Math.floor(performance.now())))
      } while (this.#isDue)
    } catch {
      this.#onStatus('lost')
    } finally {
      this.#isSending = false
    }
  }
}
