/** The floor under every framework: node:http alone, which sends an account in constant bytes whatever it is asked. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ACCOUNT } from './example-account.ts'

const BODY = Buffer.from(JSON.stringify(ACCOUNT))
const FIELDS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  etag: '"1"',
  'content-type': 'application/json; charset=utf-8',
  'content-length': BODY.length,
}

// As long as Fastify's: it is one of the bytes sent.
const server = createServer({ keepAliveTimeout: 72_000 }, (_request, response) => {
  response.writeHead(200, FIELDS).end(BODY)
})
server.listen(Number(process.env.PORT), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`Server listening at http://127.0.0.1:${port}\n`)
})
