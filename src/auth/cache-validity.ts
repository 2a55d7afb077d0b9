/** Milliseconds for which an answer of the store is good where changes are not heard in time: for the gate that comes next. */
const ANSWER_GOOD_FOR = 100

/** How far what is remembered may be relied on, as changes are heard of. Timestamps are those of `performance.now()`. */
export class CacheValidity {
  /** Changes made elsewhere are heard of, and in time: what is remembered is as the store has it. */
  isComplete = false
  #listening = false
  #changedAt = 0

  /** @returns whether anything has to be forgotten: nobody has told of what changed meanwhile. */
  listening(isListening: boolean): boolean {
    const mayHaveMissed = isListening || this.#listening
    this.#listening = this.isComplete = isListening
    return mayHaveMissed
  }

  late(isLate: boolean): void {
    this.isComplete = this.#listening && !isLate
  }

  /** To be called with every change that is heard of. */
  changed(): void {
    this.#changedAt = performance.now()
  }

  /** Whether what the store said is still good, as long as nothing more is known. */
  isGood(askedAt: number): boolean {
    return askedAt > this.#changedAt && performance.now() - askedAt < ANSWER_GOOD_FOR
  }
}
