/** A collector of spans: receives OTLP over HTTP as JSON. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Context } from './build.ts'
import { until } from './until.ts'

const DEADLINE = 20_000

interface OtlpAttribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: readonly OtlpAttribute[]
  readonly status: { readonly code?: number; readonly message?: string }
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

type Attributes = Readonly<Record<string, unknown>>

export interface ReceivedSpan extends Omit<OtlpSpan, 'attributes'> {
  readonly attributes: Attributes
  readonly resource: Attributes
}

/** The values of {@link ReceivedSpan}`.kind`. */
export const SERVER = 2
export const CLIENT = 3

const valuesOf = (attributes: readonly OtlpAttribute[]): Attributes =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const spansIn = ({ resourceSpans }: OtlpBody): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(span => ({
        ...span,
        attributes: valuesOf(span.attributes),
        resource: valuesOf(resource.attributes),
      })),
    ),
  )

export interface Collector {
  /** The environment of a service that sends its spans here soon. */
  readonly env: Readonly<Record<string, string>>
  readonly url: string
  /** The paths and headers of all requests. */
  readonly requests: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> }[]
  readonly spans: () => readonly ReceivedSpan[]
  /** Everything received, as text. */
  readonly text: () => string
  /** Waits until a span has this name. @throws {Error} if none arrives. */
  named(name: string): Promise<ReceivedSpan>
}

export const startCollector = async (t: Context): Promise<Collector> => {
  const bodies: string[] = []
  const spans: ReceivedSpan[] = []
  const requests: Collector['requests'] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    bodies.push(body)
    requests.push({ url: request.url ?? '', headers: request.headers })
    spans.push(...spansIn(JSON.parse(body)))
    response.setHeader('content-type', 'application/json').end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const named = async (name: string): Promise<ReceivedSpan> => {
    const find = () => spans.find(span => span.name === name)
    const found = await until(find, span => span !== undefined, DEADLINE)
    if (found === undefined) throw new Error(`no span ${name}, but ${spans.map(span => span.name)}`)
    return found
  }
  return {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '20' },
    url,
    requests,
    spans: () => spans,
    text: () => bodies.join('\n'),
    named,
  }
}
