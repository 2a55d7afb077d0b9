/** What the routes with events have in common: their query, and their response as a page or as a stream. */
import { type TSchema, Type } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ServiceError } from '#base/errors'
import { EVENT_SORTS, type EventSort } from '#core/audit-log/audit-log'
import type { AuditEvent } from '#core/audit-log/event'
import type { EventStreamRequest } from '#core/audit-log/event-streams'
import type { EventFilter } from '#core/audit-log/listing'
import { canonicalAddress, earlierThan, laterThan } from '#http/validation/formats'
import { prefersType } from '#http/validation/weighted-elements'
import { disconnectSignal } from './request-context.ts'
import { linkToNext } from './response-headers.ts'
import { ErrorBody, InputId, pageProperties, TimeFilter } from './schemas.ts'

const EVENT_STREAM = 'text/event-stream'

/** The query of a list of events. @param types see `app.services.eventSchemas`. */
export const eventsProperties = (types: readonly string[]) => ({
  ...pageProperties,
  sort: Type.Unsafe<EventSort>({
    type: 'string',
    enum: [...EVENT_SORTS],
    default: '-at',
    description:
      'Newest first, or with `at` in the order in which events became visible, for consumers: then `nextCursor` is never `null`, and no event is skipped',
  }),
  type: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: [...types] })),
  after: TimeFilter('Strictly later'),
  before: TimeFilter('Strictly earlier'),
})

/** The query of the list of all events. */
export const adminEventsProperties = (types: readonly string[]) => ({
  ...eventsProperties(types),
  userId: Type.Optional(InputId),
  actorId: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'The id of the actor: of an admin key, an API key, or a user',
    }),
  ),
  ip: Type.Optional(
    Type.String({
      maxLength: 64,
      description:
        'The address of the client. No index has it, nor `actorId`: a page compares up to 10,000 events, and may have fewer results than `limit`, or none, before the last one',
    }),
  ),
})

const NextEventCursor = Type.Unsafe<string | null>({
  type: ['string', 'null'],
  description: '`null` on the last page; with `sort=at` always a cursor: repeat the request later with it',
  examples: [null],
})

/** The responses of a list of events. @param title of the page. */
export const eventsResponses = <Event extends TSchema>(event: Event, title: string) => ({
  200: {
    description:
      'A page; with `Accept: text/event-stream` a stream of Server-Sent Events, each with an event as data',
    content: {
      'application/json': {
        schema: Type.Object({ results: Type.Array(event), nextCursor: NextEventCursor }, { title }),
      },
      [EVENT_STREAM]: {
        schema: Type.String({ examples: ['id: YXQgY291bnRlZCAxIA\nretry: 2000\n\n'] }),
      },
    },
  },
  429: ErrorBody,
  503: ErrorBody,
})

interface EventsQuery {
  readonly limit: number
  readonly cursor?: string
  readonly sort: EventSort
  readonly userId?: string
  readonly actorId?: string
  readonly ip?: string
  readonly type?: string
  readonly after?: string
  readonly before?: string
}

interface EventsRoute {
  readonly query: EventsQuery
  readonly serialize: (event: AuditEvent<string | null>) => object
  readonly stream: Pick<EventStreamRequest, 'credential' | 'network' | 'isAuthenticated'>
}

/** @throws {ServiceError} `addressInvalid` */
const addressIn = (ip: string): string => {
  const address = canonicalAddress(ip)
  if (address === null) throw new ServiceError('addressInvalid')
  return address
}

const filterOf = ({ userId, actorId, ip, type, after, before }: EventsQuery): EventFilter => ({
  ...(userId !== undefined && { userId }),
  ...(actorId !== undefined && { actorId }),
  ...(ip !== undefined && { ip: addressIn(ip) }),
  ...(type !== undefined && { type }),
  ...(after !== undefined && { after: laterThan(after) }),
  ...(before !== undefined && { before: earlierThan(before) }),
})

/** Whether a client prefers a stream. A page is the default. */
const acceptsStream = ({ method, headers: { accept = '' } }: FastifyRequest): boolean =>
  method === 'GET' && prefersType(accept, EVENT_STREAM, 'application/json')

/** Sends a page of events, or a stream to a client that prefers one. @throws {ServiceError} as `AuditLog.list`, `EventStreams.open` */
export const sendEvents = async (
  request: FastifyRequest,
  reply: FastifyReply,
  { query, serialize, stream }: EventsRoute,
) => {
  const { auditLog, eventStreams } = request.server.services
  const filter = filterOf(query)
  reply.header('cache-control', 'no-store').vary('accept')
  if (acceptsStream(request)) {
    // Browsers send it when they connect again. The URL then still has the cursor of the beginning.
    const { 'last-event-id': lastEventId } = request.headers
    const cursor = lastEventId === undefined ? query.cursor : String(lastEventId)
    const disconnected = disconnectSignal(reply)
    const body = await eventStreams.open({ ...stream, filter, cursor, serialize, disconnected })
    // Proxies must neither keep back, nor compress, what arrives event by event.
    reply
      .header('cache-control', 'no-store, no-transform')
      .header('x-accel-buffering', 'no')
      .type(EVENT_STREAM)
    return reply.send(body)
  }
  const { limit, cursor, sort } = query
  const { events, nextCursor } = await auditLog.list({ filter, limit, cursor, sort })
  linkToNext(request, reply, nextCursor)
  return reply.type('application/json; charset=utf-8').send({ results: events.map(serialize), nextCursor })
}
