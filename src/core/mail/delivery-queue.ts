import { describeError, isPermanent, MailFailure } from './transport-errors.ts'

/** Times in milliseconds. */
export interface DeliveryLimits {
  readonly capacity: number
  readonly concurrency: number
  /** Between the first attempt and the second. It doubles with each attempt, up to `maxDelay`. */
  readonly firstDelay: number
  readonly maxDelay: number
  /** After which a mail is dropped. */
  readonly maxAge: number
  readonly closing: number
}

/** Log lines have the kind of a mail, never its recipient or content. */
export interface DeliveryLog {
  info(message: string): void
  warn(message: string): void
  error(context: { readonly err: Error }, message: string): void
}

export interface DeliveryStatistics {
  readonly sent: number
  readonly failed: number
  readonly retries: number
  readonly waiting: number
}

interface Delivery {
  readonly kind: string
  readonly attempt: () => Promise<void>
  readonly givenUpAt: number
  delay: number
}

const withJitter = (delay: number): number => Math.round(delay * (0.75 + Math.random() / 2))

/** Sends mails, a few at a time, and retries failed ones. In memory: the end of the process loses what waits. */
export class DeliveryQueue {
  readonly #limits: DeliveryLimits
  readonly #log: DeliveryLog
  readonly #due = new Set<Delivery>()
  readonly #delayed = new Map<Delivery, NodeJS.Timeout>()
  readonly #running = new Set<Delivery>()
  #isFailing = false
  #isClosed = false
  #hasEnded = false
  #unsent = 0
  #sent = 0
  #failedMails = 0
  #retries = 0
  #drained: () => void = () => undefined

  constructor(limits: DeliveryLimits, log: DeliveryLog) {
    this.#limits = limits
    this.#log = log
  }

  get statistics(): DeliveryStatistics {
    return { sent: this.#sent, failed: this.#failedMails, retries: this.#retries, waiting: this.#size }
  }

  /** Returns before `attempt` runs. */
  add(kind: string, attempt: () => Promise<void>): void {
    const { capacity, maxAge, firstDelay } = this.#limits
    if (this.#isClosed || this.#size >= capacity) {
      this.#failedMails += 1
      const reason = this.#isClosed ? 'the service is shutting down' : `the queue is full (${capacity} mails)`
      return this.#log.error({ err: new MailFailure(reason) }, `a mail was dropped (${kind})`)
    }
    this.#due.add({ kind, attempt, givenUpAt: performance.now() + maxAge, delay: firstDelay })
    setImmediate(() => this.#next())
  }

  /** Tries every waiting mail once more. @param abort cancels the attempts that are running after `closing`. */
  async close(abort: () => void): Promise<void> {
    this.#isClosed = true
    for (const delivery of this.#delayed.keys()) this.#becomesDue(delivery)
    const drained = new Promise<void>(resolve => {
      this.#drained = resolve
    })
    const timer = setTimeout(this.#drained, this.#limits.closing)
    this.#next()
    await drained
    clearTimeout(timer)
    this.#hasEnded = true
    const unsent = this.#unsent + this.#due.size + this.#running.size
    this.#due.clear()
    abort()
    if (unsent > 0)
      this.#log.error({ err: new MailFailure('the service is shutting down') }, `mails not sent: ${unsent}`)
  }

  get #size(): number {
    return this.#due.size + this.#delayed.size + this.#running.size
  }

  #next(): void {
    for (const delivery of this.#due) {
      if (this.#running.size >= this.#limits.concurrency) return
      this.#due.delete(delivery)
      this.#running.add(delivery)
      void this.#try(delivery)
    }
    if (this.#running.size === 0) this.#drained()
  }

  async #try(delivery: Delivery): Promise<void> {
    try {
      await delivery.attempt()
      this.#sent += 1
      if (this.#isFailing) this.#log.info('mails can be sent again')
      this.#isFailing = false
    } catch (error) {
      if (!this.#hasEnded) this.#failed(delivery, error)
    } finally {
      this.#running.delete(delivery)
      this.#next()
    }
  }

  #failed(delivery: Delivery, error: unknown): void {
    const { kind } = delivery
    const reason = describeError(error)
    if (isPermanent(error)) {
      this.#failedMails += 1
      return this.#log.error({ err: new MailFailure(reason) }, `a mail was refused (${kind})`)
    }
    // Once for all mails.
    if (!this.#isFailing) this.#log.warn(`mails cannot be sent and are retried: ${reason}`)
    this.#isFailing = true
    if (this.#isClosed) this.#unsent += 1
    else if (this.#postpone(delivery)) this.#retries += 1
    else {
      this.#failedMails += 1
      this.#log.error({ err: new MailFailure(reason) }, `a mail was dropped after the last attempt (${kind})`)
    }
  }

  /** @returns whether there is time for another attempt. */
  #postpone(delivery: Delivery): boolean {
    const delay = withJitter(delivery.delay)
    if (performance.now() + delay > delivery.givenUpAt) return false
    delivery.delay = Math.min(2 * delivery.delay, this.#limits.maxDelay)
    const retry = (): void => {
      this.#becomesDue(delivery)
      this.#next()
    }
    this.#delayed.set(delivery, setTimeout(retry, delay).unref())
    return true
  }

  #becomesDue(delivery: Delivery): void {
    clearTimeout(this.#delayed.get(delivery))
    this.#delayed.delete(delivery)
    this.#due.add(delivery)
  }
}
