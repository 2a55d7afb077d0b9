// A receiver of webhooks: WEBHOOK_SECRET=whsec_… node receiver.js
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

const { WEBHOOK_SECRET = '', PORT = '4200' } = process.env
const key = Buffer.from(WEBHOOK_SECRET.replace('whsec_', ''), 'base64')

const isAuthentic = (headers, body) => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures = '' } = headers
  if (!(Math.abs(Date.now() / 1_000 - at) < 300)) return false // an old message that somebody has recorded
  const expected = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest()
  const given = signatures.split(' ').map(each => Buffer.from(each.replace('v1,', ''), 'base64'))
  return given.some(each => each.length === expected.length && timingSafeEqual(each, expected))
}

const handled = new Set() // in production a table of the database that the event changes
const server = createServer(async (request, response) => {
  const body = await text(request) // the exact bytes are signed
  const id = request.headers['webhook-id']
  if (!isAuthentic(request.headers, body)) return response.writeHead(401).end()
  if (!handled.has(id)) console.log(JSON.parse(body).data)
  handled.add(id)
  response.writeHead(204).end()
})
server.listen(Number(PORT), () => console.error(`listens on port ${server.address().port}`))
