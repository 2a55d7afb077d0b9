/** The lower bound of every framework: node:http alone, which sends constant bytes for every request. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { COMMON_FIELDS } from './bare-fastify.ts'
import { ACCOUNT } from './example-account.ts'

const BODY = Buffer.from(JSON.stringify(ACCOUNT))
const FIELDS = {
  ...COMMON_FIELDS,
  'cache-control': 'no-store',
  etag: '"1"',
  'content-type': 'application/json; charset=utf-8',
  'content-length': BODY.length,
}

// Like Fastify's, because it is part of the response.
const server = createServer({ keepAliveTimeout: 72_000 }, (_request, response) => {
  response.writeHead(200, FIELDS).end(BODY)
})
server.listen(Number(process.env.PORT), '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`Server listening at http://127.0.0.1:${port}\n`)
})
