/** Whether what an instance sends to itself by way of the database comes back, and in time. */

/** Milliseconds between two heartbeats. */
export const HEARTBEAT_INTERVAL = 300

/**
 * Milliseconds from the sending of the last heartbeat that has come back: from here on it is late, from there on the
 * connection is lost. Looked at every interval, so no change is unheard of for longer than 850 ms.
 */
const LATE = 550
const LOST = 5_000

export type Hearing = 'inTime' | 'late' | 'lost'

export class Heartbeats {
  readonly #send: (text: string) => Promise<unknown>
  readonly #onHearing: (hearing: Hearing) => void
  readonly #timer: NodeJS.Timeout
  /** When the last one was sent that has come back (milliseconds of `performance.now()`). */
  #sentAt = performance.now()
  #isSending = false
  /** Another one was to be sent meanwhile. */
  #isDue = false

  /**
   * Sends the first one.
   * @param send has the database send this text back to {@link receive}.
   * @param onHearing told every interval, and of what comes back in time; until then nothing is heard in time.
   */
  constructor(send: (text: string) => Promise<unknown>, onHearing: (hearing: Hearing) => void) {
    this.#send = send
    this.#onHearing = onHearing
    this.#timer = setInterval(() => this.#look(), HEARTBEAT_INTERVAL)
    void this.#beat()
  }

  /** It says what was known when it was sent. */
  receive(text: string): void {
    this.#sentAt = Number(text)
    if (performance.now() - this.#sentAt < LATE) this.#onHearing('inTime')
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#isDue = false
  }

  #look(): void {
    // One at a time: behind another one, the next would be late by as long as it waits.
    if (this.#isSending) this.#isDue = true
    else void this.#beat()
    const age = performance.now() - this.#sentAt
    if (age >= LOST) this.#onHearing('lost')
    else if (age >= LATE) this.#onHearing('late')
  }

  async #beat(): Promise<void> {
    this.#isSending = true
    try {
      do {
        this.#isDue = false
        await this.#send(String(Math.floor(performance.now())))
      } while (this.#isDue)
    } catch {
      this.#onHearing('lost')
    } finally {
      this.#isSending = false
    }
  }
}
