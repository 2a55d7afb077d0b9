/**
 * `npm run load -- <command>` checks the service, runs the command of a load generator, and prints what the service has counted
 * in the meantime. Without a command it only checks.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import {
  descriptionOf,
  difference,
  missingTokens,
  refusalOf,
  reportOf,
  requestsIn,
  tokenRefusalOf,
} from './service.js'

const {
  BASE_URL = 'http://localhost:3000',
  ADMIN_KEY = 'an-admin-key-to-play-with',
  TOKENS = 'data/tokens.txt',
} = process.env

const print = text => process.stderr.write(`${text}\n`)

const stop = reason => {
  print(reason)
  process.exit(1)
}

const get = async (path, headers) => {
  const response = await fetch(BASE_URL + path, { headers }).catch(() => null)
  return { status: response?.status ?? 0, body: (await response?.text()) ?? '' }
}

const getAsAdmin = path => get(path, { 'x-admin-key': ADMIN_KEY })

const readTokens = async () => {
  const tokens = { first: '', count: 0 }
  const lines = createInterface({ input: createReadStream(TOKENS) })
  for await (const line of lines) {
    // Of disabled accounts.
    if (line === '') continue
    if (tokens.count === 0) tokens.first = line
    tokens.count += 1
  }
  return tokens
}

const readCounts = async () => {
  const { status, body } = await getAsAdmin('/admin/metrics')
  if (status !== 200) stop(`${BASE_URL}/admin/metrics responds with ${status}`)
  return requestsIn(body)
}

/** @returns the exit code of the command. */
const run = async (command, args) => {
  const child = spawn(command, args, { stdio: 'inherit' })
  // Ctrl-C ends the command; what it has sent until then is reported.
  process.on('SIGINT', () => undefined)
  process.on('SIGTERM', () => child.kill())
  child.on('error', ({ code, message }) => stop(code === 'ENOENT' ? `${command} is not installed` : message))
  const [code] = await once(child, 'close')
  return code ?? 1
}

const tokens = await readTokens().catch(() => stop(missingTokens(TOKENS)))
const status = await getAsAdmin('/admin/status')
const refusal = refusalOf(BASE_URL, status, tokens.count)
if (refusal !== null) stop(refusal)
const account = await get('/account', { authorization: `Bearer ${tokens.first}` })
const tokenRefusal = tokenRefusalOf(account.status)
if (tokenRefusal !== null) stop(tokenRefusal)
print(descriptionOf(JSON.parse(status.body)))

const [command, ...args] = process.argv.slice(2)
if (command !== undefined) {
  const before = await readCounts()
  process.exitCode = await run(command, args)
  print(`\n${reportOf(difference(before, await readCounts()))}`)
}
