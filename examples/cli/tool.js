#!/usr/bin/env node
/** A command-line tool that signs its user in by a browser (RFC 8628), keeps the refresh token, and refreshes. It needs Node.js alone. */
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID = '', NO_BROWSER } = process.env
const FILE = process.env.TOKENS ?? join(homedir(), '.config', 'gatehouse-example', 'tokens.json')

/** Seconds before its end at which an access token is replaced. */
const EARLY = 30

/** An error that the user can do something about. */
const fail = message => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const metadata = async () => {
  const response = await fetch(`${ISSUER}/.well-known/oauth-authorization-server`)
  if (!response.ok) fail(`${ISSUER} is no authorization server`)
  const found = await response.json()
  // RFC 8414 §3.3
  if (found.issuer !== ISSUER) fail(`${ISSUER} says that it is ${found.issuer}`)
  return found
}

const post = async (url, parameters) => {
  const body = new URLSearchParams({ client_id: CLIENT_ID, ...parameters })
  const response = await fetch(url, { method: 'POST', body })
  return { isGranted: response.ok, ...(await response.json()) }
}

/** Only the user may read the file. A process that stops while it writes leaves the former one. */
const save = ({ access_token: accessToken, refresh_token: refreshToken, expires_in: lifetime }) => {
  const tokens = { accessToken, refreshToken, expiresAt: Date.now() + lifetime * 1_000 }
  mkdirSync(dirname(FILE), { recursive: true, mode: 0o700 })
  const temporary = `${FILE}.${process.pid}`
  writeFileSync(temporary, JSON.stringify(tokens), { mode: 0o600, flag: 'wx' })
  renameSync(temporary, FILE)
  return tokens
}

const saved = () => {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'))
  } catch {
    return fail('Sign in first: tool.js sign-in')
  }
}

const openBrowser = url => {
  if (NO_BROWSER !== undefined) return
  const command = { darwin: 'open', win32: 'explorer' }[process.platform] ?? 'xdg-open'
  // Without one the user types the code elsewhere.
  spawn(command, [url], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}

const signIn = async () => {
  const { device_authorization_endpoint: endpoint, token_endpoint: tokenEndpoint } = await metadata()
  const device = await post(endpoint, { scope: 'account:read offline_access' })
  if (!device.isGranted) fail(device.error_description)
  process.stdout.write(`Open ${device.verification_uri} and enter ${device.user_code}\n`)
  openBrowser(device.verification_uri_complete)
  let interval = device.interval
  for (;;) {
    await wait(interval * 1_000)
    const response = await post(tokenEndpoint, {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: device.device_code,
    })
    if (response.isGranted) {
      save(response)
      return process.stdout.write('You are signed in\n')
    }
    if (response.error === 'slow_down') interval += 5
    else if (response.error !== 'authorization_pending') fail(response.error_description)
  }
}

/** Several processes may refresh at once: each gets a token that works. */
const accessToken = async () => {
  const tokens = saved()
  if (Date.now() < tokens.expiresAt - EARLY * 1_000) return tokens.accessToken
  const { token_endpoint: endpoint } = await metadata()
  const response = await post(endpoint, { grant_type: 'refresh_token', refresh_token: tokens.refreshToken })
  return response.isGranted ? save(response).accessToken : fail('Your access has ended: tool.js sign-in')
}

const showAccount = async () => {
  const response = await fetch(`${ISSUER}/account`, {
    headers: { authorization: `Bearer ${await accessToken()}` },
  })
  if (response.status === 401) fail('Your access has ended: tool.js sign-in')
  process.stdout.write(`${(await response.json()).email}\n`)
}

const signOut = async () => {
  const { revocation_endpoint: endpoint } = await metadata()
  await post(endpoint, { token: saved().refreshToken })
  rmSync(FILE)
}

const COMMANDS = { 'sign-in': signIn, account: showAccount, 'sign-out': signOut }

const command = COMMANDS[process.argv[2]]
if (command === undefined || CLIENT_ID === '') fail('usage: CLIENT_ID=… tool.js sign-in|account|sign-out')
await command()
