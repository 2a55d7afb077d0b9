/** The service with `WORKERS=2`, and which of its processes respond. */
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../support/build.ts'
import { type Running, startServer } from '../../support/process.ts'
import { calls, send } from './http.ts'
import { freePort } from './instance.ts'

/** Connections that are opened to find out which processes respond: with so many, each of two workers gets some. */
const CONNECTIONS = 24

/** Milliseconds between two polls, and that log lines may take. */
const INTERVAL = 100

export interface Workers {
  readonly server: Running
  /** The processes that responded since the call, over many connections. */
  responding(): Promise<ReadonlySet<number>>
  /** Waits until two respond, none of them `gone`. @returns them and the milliseconds; `null` after `limit`. */
  untilTwo(
    limit: number,
    gone?: number,
  ): Promise<{ readonly pids: readonly number[]; readonly after: number } | null>
  /** Every process that has ever logged. */
  pids(): ReadonlySet<number>
}

const pidsIn = (log: string, message: string): ReadonlySet<number> =>
  new Set(
    log
      .split('\n')
      .filter(line => line.includes(message))
      .flatMap(line => /"pid":(\d+)/.exec(line)?.[1] ?? [])
      .map(Number),
  )

export const startWorkers = async (context: Context, env: Record<string, string>): Promise<Workers> => {
  const server = await startServer(context, {
    env: {
      NODE_ENV: 'production',
      DRAIN_DELAY: '1s',
      LOG_REQUESTS: 'on',
      ...env,
      WORKERS: '2',
      PORT: String(await freePort()),
    },
  })
  const responding = async (): Promise<ReadonlySet<number>> => {
    const from = server.output().length
    const requests = Array.from({ length: CONNECTIONS }, () =>
      send(server.url, calls.ready(), false).catch(() => null),
    )
    await Promise.all(requests)
    await sleep(INTERVAL)
    return pidsIn(server.output().slice(from), 'incoming request')
  }
  return {
    server,
    responding,
    async untilTwo(limit, gone = 0) {
      const begin = performance.now()
      while (performance.now() < begin + limit) {
        const pids = await responding()
        if (pids.size === 2 && !pids.has(gone)) return { pids: [...pids], after: performance.now() - begin }
      }
      return null
    },
    pids: () => pidsIn(server.output(), ''),
  }
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Waits until all processes have ended. @returns those that remain after so many milliseconds. */
export const survivors = async (pids: Iterable<number>, limit: number): Promise<number[]> => {
  const end = performance.now() + limit
  const all = [...pids]
  while (all.some(isAlive) && performance.now() < end) await sleep(INTERVAL)
  return all.filter(isAlive)
}

/** A sign-up whose body is held back once the service has accepted the request. */
export const halfSignUp = async (url: string, email: string, password: string) => {
  const { path, method, body } = calls.signUp(email, password)
  const payload = JSON.stringify(body)
  const outgoing = request(url + path, {
    method,
    agent: false,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(payload),
      expect: '100-continue',
    },
  })
  const taken = Promise.withResolvers<void>()
  const responded = Promise.withResolvers<number>()
  outgoing.once('continue', taken.resolve)
  outgoing.once('error', error => {
    taken.reject(error)
    responded.reject(error)
  })
  outgoing.once('response', response => {
    text(response).then(() => responded.resolve(response.statusCode ?? 0), responded.reject)
  })
  outgoing.flushHeaders()
  await taken.promise
  return {
    /** Sends the body. @returns the status; 0 without a response. */
    async finish(): Promise<number> {
      outgoing.end(payload)
      return responded.promise.catch(() => 0)
    },
  }
}
