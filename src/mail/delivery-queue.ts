/** What can be said of a mail that could not be sent: servers repeat addresses in their answers, so those are not. */

interface TransportError extends Error {
  readonly code?: string
  readonly responseCode?: number
  readonly response?: string
  readonly command?: string
  /** nodemailer's reading of `responseCode`. */
  readonly permanent?: boolean
  readonly syscall?: string
}

/** Codes of nodemailer: the address or the message was refused, by the server or before it was asked. */
const REFUSALS: ReadonlySet<unknown> = new Set(['EENVELOPE', 'EMESSAGE'])

/** Codes of nodemailer whose messages are about the connection. */
const CONNECTION: ReadonlySet<unknown> = new Set(['ECONNECTION', 'ESOCKET', 'ETIMEDOUT', 'EDNS', 'ETLS'])

/**
 * Whether another attempt would end alike: the server refuses this mail for good (5xx, RFC 5321 §4.2.1). Refused
 * credentials or a server that serves nobody are none of the mail's fault, and may be mended meanwhile.
 */
export const isPermanent = (error: unknown): boolean => {
  const { code, permanent, responseCode } = error as TransportError
  return REFUSALS.has(code) && (permanent === true || responseCode === undefined)
}

/** Why, without the server's own words. */
export const describe = (error: unknown): string => {
  const { name, message, code, responseCode, response, command, syscall } = error as TransportError
  if (responseCode !== undefined) {
    const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response ?? '')?.[1]
    return [responseCode, enhanced, 'to', command].filter(part => part !== undefined).join(' ')
  }
  return syscall !== undefined || CONNECTION.has(code) ? message : (code ?? name)
}

/** What is logged in place of the transport's error. */
export class MailFailure extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'MailFailure'
  }
}

/** Times in milliseconds. */
export interface DeliveryLimits {
  /** Mails that may wait, in memory. */
  readonly capacity: number
  /** Mails under way at once. */
  readonly concurrency: number
  /** From the first attempt to the second; it doubles from attempt to attempt, up to `maxDelay`. */
  readonly firstDelay: number
  readonly maxDelay: number
  /** After which a mail is given up. */
  readonly patience: number
  /** How long closing may take. */
  readonly closing: number
}

/** Where it is said what becomes of mails; never who gets them or what is in them. */
export interface DeliveryLog {
  onNotice(message: string): void
  onWarning(message: string): void
  onFailure(error: unknown, message: string): void
}

interface Delivery {
  readonly kind: string
  readonly attempt: () => Promise<void>
  readonly givenUpAt: number
  delay: number
}

/** Instances that lost the same server do not come back to it at the same timestamp. */
const withJitter = (delay: number): number => Math.round(delay * (0.75 + Math.random() / 2))

/** Sends mails a few at a time, and again what could not be sent. Nothing of it survives the process. */
export class DeliveryQueue {
  readonly #limits: DeliveryLimits
  readonly #log: DeliveryLog
  readonly #due = new Set<Delivery>()
  readonly #later = new Map<Delivery, NodeJS.Timeout>()
  readonly #running = new Set<Delivery>()
  #failing = false
  #closed = false
  #ended = false
  #unsent = 0
  #drained: () => void = () => undefined

  constructor(limits: DeliveryLimits, log: DeliveryLog) {
    this.#limits = limits
    this.#log = log
  }

  /** Returns before anything of `attempt` runs. */
  add(kind: string, attempt: () => Promise<void>): void {
    const { capacity, patience, firstDelay } = this.#limits
    if (this.#closed || this.#due.size + this.#later.size + this.#running.size >= capacity) {
      const reason = this.#closed ? 'the service stops' : `${capacity} mails wait already`
      return this.#log.onFailure(new MailFailure(reason), `a mail was dropped (${kind})`)
    }
    this.#due.add({ kind, attempt, givenUpAt: performance.now() + patience, delay: firstDelay })
    setImmediate(() => this.#next())
  }

  /** Tries whatever waits once more, for a bounded time. @param abort ends what is under way by then. */
  async close(abort: () => void): Promise<void> {
    this.#closed = true
    for (const delivery of this.#later.keys()) this.#becomesDue(delivery)
    const drained = new Promise<void>(resolve => {
      this.#drained = resolve
    })
    const timer = setTimeout(this.#drained, this.#limits.closing)
    this.#next()
    await drained
    clearTimeout(timer)
    this.#ended = true
    const unsent = this.#unsent + this.#due.size + this.#running.size
    this.#due.clear()
    abort()
    if (unsent > 0) this.#log.onFailure(new MailFailure('the service stops'), `mails not sent: ${unsent}`)
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
      if (this.#failing) this.#log.onNotice('mails can be sent again')
      this.#failing = false
    } catch (error) {
      if (!this.#ended) this.#failed(delivery, error)
    } finally {
      this.#running.delete(delivery)
      this.#next()
    }
  }

  #failed(delivery: Delivery, error: unknown): void {
    const { kind } = delivery
    const reason = describe(error)
    if (isPermanent(error))
      return this.#log.onFailure(new MailFailure(reason), `a mail was refused (${kind})`)
    // Once, however many mails wait for the same server.
    if (!this.#failing) this.#log.onWarning(`mails cannot be sent, they are tried again: ${reason}`)
    this.#failing = true
    if (this.#closed) this.#unsent += 1
    else if (!this.#postpone(delivery))
      this.#log.onFailure(new MailFailure(reason), `a mail was given up (${kind})`)
  }

  /** @returns whether there is time left for another attempt. */
  #postpone(delivery: Delivery): boolean {
    const delay = withJitter(delivery.delay)
    if (performance.now() + delay > delivery.givenUpAt) return false
    delivery.delay = Math.min(2 * delivery.delay, this.#limits.maxDelay)
    const retry = (): void => {
      this.#becomesDue(delivery)
      this.#next()
    }
    this.#later.set(delivery, setTimeout(retry, delay).unref())
    return true
  }

  #becomesDue(delivery: Delivery): void {
    clearTimeout(this.#later.get(delivery))
    this.#later.delete(delivery)
    this.#due.add(delivery)
  }
}
