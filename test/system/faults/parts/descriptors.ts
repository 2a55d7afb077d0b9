/**
 * More connections than file descriptors: the process survives, serves again when they close, and loses no acknowledged
 * write.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { listening } from '../../../../scripts/listening.ts'
import { ADMIN_KEY, JWT_SECRET, temporaryFolder } from '../../../support/build.ts'
import { startServer } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { calls, send } from '../../instances/http.ts'
import { Report, spread } from '../../instances/report.ts'
import type { FaultPart } from '../part.ts'
import { missing, signUpProfiles, startChanges } from '../profiles.ts'

const LIMIT = 64
const CONNECTIONS = 200
const USERS = 5
const ROUNDS = 4
/** Milliseconds for which the connections stay open, and until a condition counts as failed. */
const HELD = 2_000
const DEADLINE = 15_000
const PROJECT = join(import.meta.dirname, '..', '..', '..', '..')

const startLimited = async ({ context }: Pick<FaultPart, 'context'>, databaseFile: string) => {
  const command = `ulimit -n ${LIMIT} && exec "$0" --import ./src/preload.js src/server.ts`
  const child = spawn('sh', ['-c', command, process.execPath], {
    cwd: PROJECT,
    env: {
      ...process.env,
      NODE_ENV: 'test',
      PORT: '0',
      DATABASE_URL: `sqlite:${databaseFile}`,
      ADMIN_KEY,
      JWT_SECRET,
      DRAIN_DELAY: '0s',
      RATE_LIMIT: 'off',
      MAIL_URL: 'off',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  context.teardown(() => {
    child.kill('SIGKILL')
    return exited
  })
  return { child, exited, ...(await listening(child, DEADLINE)) }
}

/** Opens the connections, each with half a request. @returns a function that closes them. */
const hold = (port: number): (() => void) => {
  const sockets = Array.from({ length: CONNECTIONS }, (): Socket => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\n')
    return socket
  })
  return () => {
    for (const socket of sockets) socket.destroy()
  }
}

export const run = async ({ context }: FaultPart): Promise<Report> => {
  const report = new Report('Too few descriptors')
  if (process.platform === 'win32') {
    report.figure('skipped', 'there is no ulimit')
    return report
  }
  const databaseFile = join(temporaryFolder(context), 'test.db')
  const server = await startLimited({ context }, databaseFile)
  const port = Number(new URL(server.url).port)
  const backAfter: number[] = []
  const failures: string[] = []

  const ready = () =>
    send(server.url, calls.ready(), false).then(
      response => response.status,
      () => 0,
    )

  // The first password loads files.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  await send(server.url, calls.ready(), agent)
  const letGoFirst = hold(port)
  await sleep(HELD / 2)
  const signUp = calls.signUp('first@example.com', 'a rather long pass phrase 7')
  const first = await send(server.url, signUp, agent).then(
    ({ status }) => status,
    error => String(error),
  )
  letGoFirst()
  agent.destroy()
  report.figure('status of a sign-up meanwhile', first)
  if (first !== 201 && first !== 503) failures.push(`a sign-up returned ${first}`)
  await until(ready, status => status === 200, DEADLINE)
  const profiles = await signUpProfiles(server.url, USERS)
  let acknowledged = 0

  for (let round = 0; round < ROUNDS; round += 1) {
    const changes = startChanges(server.url, profiles)
    await sleep(200)
    const letGo = hold(port)
    await sleep(HELD)
    letGo()
    const goneAt = performance.now()
    if ((await until(ready, status => status === 200, DEADLINE)) !== 200)
      failures.push('it does not respond again')
    backAfter.push(performance.now() - goneAt)
    await changes.stop()
    acknowledged += changes.statuses.get(200) ?? 0
    for (const status of changes.statuses.keys())
      if (![0, 200, 503].includes(status)) failures.push(`a change returned ${status}`)
    failures.push(...(await missing(server.url, profiles)))
  }
  if (server.child.exitCode !== null) failures.push(`it has ended with ${server.child.exitCode}`)
  if (/unexpected failure|uncaught/i.test(server.output())) failures.push('there was an uncaught exception')
  server.child.kill('SIGKILL')
  await server.exited

  const again = await startServer(context, { databaseFile })
  const lost = await missing(again.url, profiles)
  await again.stop('SIGTERM')
  report.figure('rounds', ROUNDS)
  report.figure('connections, descriptors', `${CONNECTIONS}, ${LIMIT}`)
  report.figure('acknowledged', acknowledged)
  report.figure('responds again after (median / 99 % / max)', spread(backAfter))
  report.failures('acknowledged and missing after a restart', lost)
  report.failures('other failures', failures)
  return report
}
