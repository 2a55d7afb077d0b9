/** The trace that a request belongs to (W3C Trace Context), for its log lines. */
import type { IncomingMessage } from 'node:http'

/**
 * §3.2 of the recommendation: version, trace id, parent id and flags in lower-case hex, ids other than zero. Version `00` has nothing
 * behind the flags, later ones may; `ff` is invalid.
 */
const TRACEPARENT =
  /^(?:(?=00-.{52}$)|(?!00|ff))[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?=-|$)/

/** The valid part of a header field, at most 55 characters; `null` without one. Duplicates, which Node joins, are invalid. */
export const parseTraceparent = (field: unknown): string | null =>
  typeof field === 'string' ? (TRACEPARENT.exec(field)?.[0] ?? null) : null

/** What OpenTelemetry's `SpanContext` has, which only src/process/tracing/ may import. */
interface SpanIds {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
}

const SPAN = Symbol('gatehouse.span')

interface TracedRequest extends IncomingMessage {
  [SPAN]?: SpanIds
}

/** Sets the span of a request: from now on its log lines name that instead of the client's. */
export const setSpan = (request: TracedRequest, span: SpanIds): void => {
  request[SPAN] = span
}

/** The traceparent of a request's log lines; `null` if it belongs to no trace. */
export const traceparentOf = (request: TracedRequest): string | null => {
  const span = request[SPAN]
  if (span === undefined) return parseTraceparent(request.headers.traceparent)
  return `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`
}
