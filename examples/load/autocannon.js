/** GET /account with all tokens in turn. */
import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'

const {
  BASE_URL = 'http://localhost:3000',
  TOKENS = 'data/tokens.txt',
  CONNECTIONS = '64',
  DURATION = '10',
} = process.env

const tokens = readFileSync(TOKENS, 'utf8').trim().split('\n')
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
  duration: Number(DURATION),
  requests: [{ method: 'GET', path: '/account', setupRequest }],
})
autocannon.track(run)

const { non2xx, errors, timeouts } = await run
if (non2xx + errors + timeouts > 0) process.exitCode = 1
