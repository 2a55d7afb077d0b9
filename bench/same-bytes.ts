/** A yardstick that sends less is no yardstick: both answers must have the same fields and the same lengths. */
import type { Server } from './processes.ts'
import { type Requests, requestAt } from './requests.ts'

const shapeOf = async (server: Server, requests: Requests): Promise<string> => {
  const { method, path, headers } = requestAt(requests, 0)
  const response = await fetch(server.url + path, { method, headers })
  const body = await response.text()
  const fields = [...response.headers].map(([name, value]) =>
    name === 'date' ? 'date' : `${name}: ${value}`,
  )
  return [`status ${response.status}`, ...fields, `${Buffer.byteLength(body)} bytes`].join('\n')
}

/** @throws {Error} showing both answers. */
export const assertSameBytes = async (
  service: Server,
  yardstick: Server,
  requests: Requests,
): Promise<void> => {
  const [one, other] = [await shapeOf(service, requests), await shapeOf(yardstick, requests)]
  if (one !== other) throw new Error(`The answers differ. The service:\n${one}\n\nThe yardstick:\n${other}`)
}
