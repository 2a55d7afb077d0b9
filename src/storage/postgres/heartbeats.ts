/** Whether what an instance sends to itself by way of the database comes back, and in time. */

/** Milliseconds between two heartbeats. */
export const HEARTBEAT_INTERVAL = 300

/**
 * Milliseconds from the sending of the last heartbeat that has come back: from here on it is late, from there on the
 * connection is lost. Looked at with each heartbeat, so no change is unheard of for longer than 950 ms.
 */
const LATE = 650
const LOST = 3_000

export type Hearing = 'inTime' | 'late' | 'lost'

export class Heartbeats {
  /** Until one has come back, nothing is heard in time. */
  #hearing: Hearing = 'late'
  /** When the last one was sent that has come back. */
  #sentAt = performance.now()

  get hearing(): Hearing {
    return this.#hearing
  }

  /** To be called for each heartbeat. @returns what it says. */
  next(): string {
    const now = performance.now()
    const age = now - this.#sentAt
    if (age >= LOST) this.#hearing = 'lost'
    else if (age >= LATE) this.#hearing = 'late'
    return String(Math.floor(now))
  }

  /** To be called with what has come back, which says what was known when it was sent. */
  receive(payload: string): void {
    this.#sentAt = Number(payload)
    if (performance.now() - this.#sentAt < LATE) this.#hearing = 'inTime'
  }
}
