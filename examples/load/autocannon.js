/** GET /account with all tokens in turn. */
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'

const {
  BASE_URL = 'http://localhost:3000',
  TOKENS = 'data/tokens.txt',
  CONNECTIONS = '64',
  SECONDS = '10',
} = process.env

/** The lines of disabled accounts are empty. */
const tokens = readFileSync(TOKENS, 'utf8').split('\n').filter(Boolean)
let last = 0

/** Called for each request. */
const setupRequest = request => {
  last = (last + 1) % tokens.length
  request.headers = { authorization: `Bearer ${tokens[last]}` }
  return request
}

const run = autocannon({
  url: BASE_URL,
  connections: Number(CONNECTIONS),
  duration: Number(SECONDS),
  requests: [{ method: 'GET', path: '/account', setupRequest }],
})
autocannon.track(run)

const result = await run
const failed = result.non2xx + result.errors + result.timeouts
process.stderr.write(
  `${result['2xx'] + result.non2xx} responses: ${JSON.stringify(result.statusCodeStats)}, ${result.errors} errors\n`,
)
if (failed > 0) process.exitCode = 1
