/** Checks that a baseline sends the same header fields and the same number of bytes as the service. */
import type { Server } from './processes.ts'
import { type Requests, requestAt } from './requests.ts'

const RANDOM = new Set(['date', 'x-request-id'])

const shapeOf = async (server: Server, requests: Requests): Promise<string> => {
  const { method, path, headers, body: sent } = requestAt(requests, 0)
  const response = await fetch(server.url + path, {
    method,
    headers: { ...headers, ...(sent !== undefined && { 'content-type': 'application/json' }) },
    ...(sent !== undefined && { body: sent }),
  })
  const body = await response.text()
  const fields = [...response.headers].map(([name, value]) =>
    RANDOM.has(name) ? `${name}: ${value.length} characters` : `${name}: ${value}`,
  )
  return [`status ${response.status}`, ...fields, `${Buffer.byteLength(body)} bytes`].join('\n')
}

/** @throws {Error} with both responses. */
export const assertSameBytes = async (
  service: Server,
  baseline: Server,
  requests: Requests,
): Promise<void> => {
  const [one, other] = [await shapeOf(service, requests), await shapeOf(baseline, requests)]
  if (one !== other) throw new Error(`The responses differ. The service:\n${one}\n\nThe baseline:\n${other}`)
}
