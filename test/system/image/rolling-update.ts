/** Two containers on PostgreSQL behind Caddy, with the settings of compose.yaml, are replaced in turn under load: no request fails. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { setDefaultCACertificates } from 'node:tls'
import { startPostgres } from '../../../scripts/postgres-server.ts'
import { ADMIN_KEY, type Context, JWT_SECRET } from '../../support/build.ts'
import { query } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { bodyOf, type Call, calls, send } from '../instances/http.ts'
import { milliseconds, Report, spread } from '../instances/report.ts'
import { Journal, sendRecorded } from '../instances/response-checks.ts'
import { FOLDER, startContainer, stopContainer } from './podman.ts'
import { checkUpgrade, postgresStatements } from './release.ts'

const SITE = { name: 'Caddy', url: 'https://localhost' }
const CADDYFILE = join(import.meta.dirname, '..', '..', '..', 'deploy', 'Caddyfile')
const INSTANCES = ['gatehouse-1', 'gatehouse-2'] as const
const PASSWORD = 'a pass phrase that rolls along'

/** How often both are replaced, the connections of the load, and milliseconds that each waits between two requests. */
const ROUNDS = 3
const CONNECTIONS = 12
const REST = 15

/** One of so many requests hashes a password; one of so many others writes. */
const HASH_ONE_IN = 40
const WRITE_ONE_IN = 10

/** Milliseconds until Caddy serves. */
const START_LIMIT = 20_000

/** Files with a secret each, which the user of the image may read. @returns the volume, and the settings that name them. */
const writeSecrets = (databaseUrl: string) => {
  const secrets = {
    DATABASE_URL: databaseUrl,
    JWT_SECRET,
    ADMIN_KEY,
    ENCRYPTION_KEY: '6f1d8a3be5c2974f0b6d8e1a37c59f2406e8bd13a7f5c092',
  }
  const source = join(FOLDER, 'secrets')
  mkdirSync(source)
  for (const [name, text] of Object.entries(secrets)) writeFileSync(join(source, name), text, { mode: 0o444 })
  const env = Object.fromEntries(Object.keys(secrets).map(name => [`${name}_FILE`, `/run/secrets/${name}`]))
  return { env, volume: `${source}:/run/secrets:ro` }
}

const startCaddy = async (context: Context): Promise<void> => {
  const env = { ...process.env, HOME: FOLDER, XDG_DATA_HOME: FOLDER, XDG_CONFIG_HOME: FOLDER }
  const args = ['run', '--adapter', 'caddyfile', '--config', CADDYFILE]
  const caddy = spawn('caddy', args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  caddy.stderr.on('data', chunk => {
    output += chunk
  })
  const exited = once(caddy, 'exit')
  context.teardown(async () => {
    caddy.kill('SIGKILL')
    await exited
  })
  const authority = join(FOLDER, 'caddy', 'pki', 'authorities', 'local', 'root.crt')
  const serves = async () => {
    try {
      setDefaultCACertificates([readFileSync(authority, 'utf8')])
      return (await send(SITE.url, { method: 'GET', path: '/health' }, false)).status === 200
    } catch {
      return false
    }
  }
  if (!(await until(serves, Boolean, START_LIMIT))) throw new Error(`Caddy does not serve:\n${output}`)
}

/** @returns what ends the load. */
const startLoad = (token: string, email: string, journal: Journal): (() => Promise<void>) => {
  let running = true
  let sent = 0
  const choose = (): readonly [Call, expected: number] => {
    sent += 1
    if (sent % (2 * HASH_ONE_IN) === 0) return [calls.signUp(`rolling-${sent}@example.com`, PASSWORD), 201]
    if (sent % HASH_ONE_IN === 0) return [calls.signIn(email, PASSWORD), 200]
    if (sent % WRITE_ONE_IN === 0) return [calls.rename(token, `Roller ${sent}`), 200]
    return [calls.account(token), 200]
  }
  const work = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (running) {
      const [call, expected] = choose()
      const response = await sendRecorded(SITE, call, agent, journal)
      if (response !== null && response.status !== expected)
        journal.failure(SITE.name, call, `${response.status} ${response.text}`)
      await sleep(REST)
    }
    agent.destroy()
  }
  const clients = Array.from({ length: CONNECTIONS }, work)
  return async () => {
    running = false
    await Promise.all(clients)
  }
}

export const runRollingUpdate = async (context: Context): Promise<Report> => {
  const report = new Report('Rolling update: two containers on PostgreSQL behind Caddy')
  const postgres = await startPostgres({ durable: true })
  context.teardown(() => postgres.stop())
  await query(postgres.url, postgresStatements())
  const { env, volume } = writeSecrets(postgres.url)
  // TRUST_PROXY: where Caddy connects from. RATE_LIMIT: all clients have one address.
  const network = { TRUST_PROXY: '127.0.0.1', DRAIN_DELAY: '3s', RATE_LIMIT: 'off', PUBLIC_URL: SITE.url }
  const settings = { ...env, ...network, WORKERS: '1', DATABASE_CONNECTIONS: '10' }
  const startTimes: number[] = []
  const start = async (name: string): Promise<void> => {
    // The name leads to an address of its own.
    const took = await startContainer(name, `http://${name}:3000`, { ...settings, HOST: name }, volume)
    startTimes.push(took)
  }
  for (const name of INSTANCES) await start(name)
  await startCaddy(context)
  await checkUpgrade('postgres', SITE.url, report)

  const journal = new Journal()
  const email = 'rolling@example.com'
  const { accessToken } = bodyOf(await send(SITE.url, calls.signUp(email, PASSWORD), false))
  const stopLoad = startLoad(accessToken as string, email, journal)
  const stopTimes: number[] = []
  for (let round = 0; round < ROUNDS; round += 1)
    for (const name of INSTANCES) {
      const { code, took } = await stopContainer(name)
      stopTimes.push(took)
      report.expect(code === 0, `${name} ended with ${code}`)
      await start(name)
    }
  await stopLoad()
  for (const name of INSTANCES) await stopContainer(name)

  report.figure('containers replaced', ROUNDS * INSTANCES.length)
  report.figure('responses', journal.responses)
  report.figure('slowest response', milliseconds(journal.slowest))
  report.figure('start to ready (median / 99 % / max)', spread(startTimes))
  report.figure('SIGTERM to exit (median / 99 % / max)', spread(stopTimes))
  report.failures('failed requests', journal.failures)
  return report
}
