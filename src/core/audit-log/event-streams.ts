/**
 * Streams of events (Server-Sent Events, https://html.spec.whatwg.org/multipage/server-sent-events.html). A stream reads the log up to its
 * end, and then shares one reader with the others, so that a thousand streams cost the database as much as one.
 */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServiceError } from '#base/errors'
import type { MaybePromise } from '#base/maybe-promise'
import type { EventLog } from '../store/store.ts'
import type { AuditLog } from './audit-log.ts'
import type { AuditEvent } from './event.ts'
import { type EventFilter, isLater, type LogPosition, selects } from './listing.ts'

export interface EventStreamRequest {
  readonly filter: EventFilter
  /** The last event that the client has; `undefined`: it gets events from now on. */
  readonly cursor: string | undefined
  readonly credential: string
  /** The network of the user's client (`clientNetwork`); `null` for an admin key. */
  readonly network: string | null
  /** Whether the credential of the request is still valid. Called twice a second. */
  readonly isAuthenticated: () => MaybePromise<boolean>
  /** Aborted when the client disconnects. A stream to which nothing is written would not notice. */
  readonly disconnected: AbortSignal
  readonly serialize: (event: AuditEvent<string | null>) => object
}

export interface EventStreamLimits {
  readonly streams: number
  /** How much of `streams` users may have, and how much administrators. */
  readonly share: number
  readonly perCredential: number
  readonly perNetwork: number
  /** Bytes that wait for a client. One that reads nothing for two seconds then loses its stream. */
  readonly waiting: number
  /** Milliseconds between two comments, which keep proxies from closing the connection. */
  readonly comments: number
}

export interface EventStreamsDeps {
  readonly auditLog: Pick<AuditLog, 'cursorOf' | 'positionOf'>
  readonly eventLog: EventLog
  readonly onFailure: (error: unknown) => void
}

export const EVENT_STREAM_LIMITS: EventStreamLimits = {
  streams: 1_000,
  share: 0.9,
  perCredential: 10,
  // Otherwise a hundred accounts of one client have all that users may have.
  perNetwork: 100,
  waiting: 262_144,
  comments: 15_000,
}

/** Milliseconds between reads of the log. */
const INTERVAL = 100

/** Events of one read. */
const PAGE = 100

const CHECK_INTERVAL = 500

/** Milliseconds for which a client may read nothing while there is no room for another event. */
const STALLED = 2_000

/** Milliseconds between two looks whether a client has read. */
const ROOM_INTERVAL = 20

/** Milliseconds after which a client connects again. */
const RETRY = 2_000

/** An event with its position. Its frame is made once for all streams that serialize it in the same way. */
class PositionedEvent {
  readonly event: AuditEvent<string | null>
  readonly position: LogPosition
  readonly #cursor: string
  readonly #frames = new Map<EventStreamRequest['serialize'], string>()

  constructor(event: AuditEvent<string | null>, position: LogPosition, cursor: string) {
    this.event = event
    this.position = position
    this.#cursor = cursor
  }

  frame(serialize: EventStreamRequest['serialize']): string {
    const made = this.#frames.get(serialize)
    if (made !== undefined) return made
    const frame = `id: ${this.#cursor}\ndata: ${JSON.stringify(serialize(this.event))}\n\n`
    this.#frames.set(serialize, frame)
    return frame
  }
}

class EventStream extends Readable {
  readonly request: EventStreamRequest
  readonly #limit: number
  #hasEnded = false
  /** The position after the last event that was considered. */
  position: LogPosition

  constructor(request: EventStreamRequest, position: LogPosition, limit: number) {
    super({ highWaterMark: limit })
    this.request = request
    this.position = position
    this.#limit = limit
  }

  override _read(): void {
    // Nothing to begin.
  }

  /** Sends an event, if it is later than the others and the filter selects it. @returns false if there is no room for it. */
  offer(positioned: PositionedEvent): boolean {
    const { event, position } = positioned
    if (!isLater(position, this.position)) return true
    const { filter, serialize } = this.request
    if (selects(filter, event) && !this.send(positioned.frame(serialize))) return false
    this.position = position
    return true
  }

  send(text: string): boolean {
    if (this.destroyed || this.#hasEnded) return true
    if (this.readableLength + Buffer.byteLength(text) > this.#limit) return false
    this.push(text)
    return true
  }

  /** The client may still read what waits. One that reads nothing keeps neither its place nor the service from stopping. */
  end(): void {
    if (this.destroyed || this.#hasEnded) return
    this.#hasEnded = true
    this.push(null)
    setTimeout(() => this.destroy(), STALLED).unref()
  }

  /** Resolves when the client has read half of what waits. Ends the stream of a client that reads nothing for a while. */
  async awaitRoom(): Promise<void> {
    let waiting = this.readableLength
    let readAt = performance.now()
    while (!this.destroyed && waiting > this.#limit / 2) {
      await sleep(ROOM_INTERVAL, undefined, { ref: false })
      if (this.readableLength < waiting) readAt = performance.now()
      waiting = this.readableLength
      // What waits comes again from the client's cursor.
      if (performance.now() - readAt > STALLED) this.destroy()
    }
  }
}

export class EventStreams {
  readonly #deps: EventStreamsDeps
  readonly #limits: EventStreamLimits
  readonly #streams = new Set<EventStream>()
  /** Streams that have reached the end of the log. */
  readonly #live = new Set<EventStream>()
  /** Up to where {@link EventStreams.#read} has read; `null` while nobody is live. */
  #position: LogPosition | null = null
  #isClosed = false

  constructor(deps: EventStreamsDeps, limits: EventStreamLimits = EVENT_STREAM_LIMITS) {
    this.#deps = deps
    this.#limits = limits
  }

  get size(): number {
    return this.#streams.size
  }

  /**
   * @returns the body of the response. It ends when the credential is no longer valid, the service stops, or the client does not read.
   * @throws {ServiceError} `badCursor`, `tooManyEventStreams`, `tooManyStreamsOfNetwork`, `overloaded`, `draining`
   */
  async open(request: EventStreamRequest): Promise<Readable> {
    const { auditLog } = this.#deps
    const position = await this.#begin(request.cursor)
    // After the last wait: of simultaneous requests none is too many.
    this.#assertRoom(request)
    const stream = new EventStream(request, position, this.#limits.waiting)
    this.#streams.add(stream)
    const leave = (): void => stream.end()
    if (request.disconnected.aborted) leave()
    request.disconnected.addEventListener('abort', leave)
    stream.once('close', () => {
      request.disconnected.removeEventListener('abort', leave)
      this.#streams.delete(stream)
      this.#live.delete(stream)
    })
    // With the cursor: a client that loses the connection before the first event continues from here.
    stream.send(`id: ${auditLog.cursorOf(position)}\nretry: ${RETRY}\n\n`)
    void this.#catchUp(stream)
    void this.#watch(stream)
    return stream
  }

  close(): void {
    this.#isClosed = true
    for (const stream of this.#streams) stream.end()
  }

  async #begin(cursor: string | undefined): Promise<LogPosition> {
    const { auditLog, eventLog } = this.#deps
    if (cursor === undefined) return eventLog.end()
    const position = auditLog.positionOf(cursor)
    // That of the event itself: the client may have chosen another one, and all streams share a reader.
    const found = position.id === '' ? position : await eventLog.findPosition(position.id)
    // Where the event was removed, later ones may be too: the client would miss them and not know.
    if (found === undefined) throw new ServiceError('badCursor')
    // Without an id it is the beginning of the log, or was chosen by the client.
    if (found.id === '' && isLater(found, await eventLog.end())) throw new ServiceError('badCursor')
    return found
  }

  #assertRoom({ credential, network }: EventStreamRequest): void {
    if (this.#isClosed) throw new ServiceError('draining')
    const { streams, share, perCredential, perNetwork } = this.#limits
    let ofCredential = 0
    let ofNetwork = 0
    let ofKind = 0
    for (const { request } of this.#streams) {
      if (request.credential === credential) ofCredential += 1
      if (request.network === network) ofNetwork += 1
      if ((request.network === null) === (network === null)) ofKind += 1
    }
    if (ofCredential >= perCredential) throw new ServiceError('tooManyEventStreams')
    if (network !== null && ofNetwork >= perNetwork) throw new ServiceError('tooManyStreamsOfNetwork')
    if (this.#streams.size >= streams || ofKind >= Math.ceil(streams * share))
      throw new ServiceError('overloaded')
  }

  async #catchUp(stream: EventStream): Promise<void> {
    while (!stream.destroyed) {
      try {
        if (this.#isLive(stream)) return
        await this.#readFor(stream)
      } catch (error) {
        this.#deps.onFailure(error)
        await sleep(INTERVAL, undefined, { ref: false })
      }
    }
  }

  async #readFor(stream: EventStream): Promise<void> {
    const { eventLog, auditLog } = this.#deps
    const { events, positions, next } = await eventLog.follow({
      filter: stream.request.filter,
      after: stream.position,
      limit: PAGE,
    })
    for (const [index, event] of events.entries()) {
      const position = positions[index] ?? next
      if (!stream.offer(new PositionedEvent(event, position, auditLog.cursorOf(position))))
        return stream.awaitRoom()
    }
    stream.position = next
    if (events.length === PAGE) return
    this.#goLive(stream)
    // The reader is ahead, because an event is new, or because it was read from a server that is.
    if (!this.#isLive(stream)) await sleep(INTERVAL, undefined, { ref: false })
  }

  #isLive(stream: EventStream): boolean {
    return this.#live.has(stream)
  }

  /** Attaches a stream in one step, so that no event lies between it and what the reader publishes. */
  #goLive(stream: EventStream): void {
    if (this.#position === null) {
      this.#position = stream.position
      this.#live.add(stream)
      void this.#read()
    } else if (!isLater(this.#position, stream.position)) this.#live.add(stream)
  }

  /** A client that is slower than the events gets them at its own pace. */
  #leaveLive(stream: EventStream): void {
    this.#live.delete(stream)
    void this.#catchUp(stream)
  }

  async #read(): Promise<void> {
    while (this.#live.size > 0) {
      let isComplete = true
      try {
        isComplete = await this.#readPage()
      } catch (error) {
        this.#deps.onFailure(error)
      }
      if (isComplete) await sleep(INTERVAL, undefined, { ref: false })
    }
    this.#position = null
  }

  /** @returns whether the end of the log is reached. */
  async #readPage(): Promise<boolean> {
    const { eventLog, auditLog } = this.#deps
    const { events, positions, next } = await eventLog.follow({
      filter: {},
      after: this.#position,
      limit: PAGE,
    })
    for (const [index, event] of events.entries()) {
      const position = positions[index] ?? next
      const positioned = new PositionedEvent(event, position, auditLog.cursorOf(position))
      for (const stream of this.#live) if (!stream.offer(positioned)) this.#leaveLive(stream)
    }
    this.#position = next
    return events.length < PAGE
  }

  async #watch(stream: EventStream): Promise<void> {
    const { auditLog } = this.#deps
    let commentAt = performance.now() + this.#limits.comments
    while (!stream.destroyed) {
      await sleep(CHECK_INTERVAL, undefined, { ref: false })
      // A store that does not respond says nothing about a credential: the next check does.
      const isValid = await Promise.resolve()
        .then(stream.request.isAuthenticated)
        .catch(() => true)
      if (!isValid) return stream.end()
      if (performance.now() < commentAt) continue
      commentAt = performance.now() + this.#limits.comments
      // With the cursor, so that a client whose filter selects nothing for months does not fall behind the log.
      const position = this.#isLive(stream) ? this.#position : null
      stream.send(`${position === null ? '' : `id: ${auditLog.cursorOf(position)}\n`}: \n\n`)
    }
  }
}
