/**
 * Puts load on the target in a file (the argument), as the messages of the bench say. On a processor of its own it can offer about
 * 70,000 requests per second.
 */
import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { lengthOf, rawRequest, requestAt } from '../requests.ts'
import { quantile } from '../statistics.ts'
import { Connection } from './connection.ts'
import type { OpenLoopResult, Order, Target } from './open-loop.ts'
import { runSockets } from './sockets.ts'

/** More than two cores have in their hashing queues, so that the service rejects sign-ins. Only those that are needed are used. */
const CONNECTIONS = 512

/** Milliseconds to wait for responses after the end. */
const PATIENCE = 1_000

/** Milliseconds of sleep while no request is due: timers would be late by more than a request takes. The kernel adds 0.05. */
const NAP = 0.05

/** The part of its time in which a generator that is fast enough has nothing to do. */
const IDLE = 0.03

/** Milliseconds between checks whether the server rejects requests of an earlier load. */
const PAUSE = 100

/** Seconds until a server counts as stuck. */
const LIMIT = 120

const OVERLOADED = 503

const { url, requests } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as Target

const bytes = Array.from({ length: lengthOf(requests) }, (_, index) => rawRequest(requestAt(requests, index)))

let last = 0
const next = (): string => {
  last = (last + 1) % bytes.length
  return bytes[last] as string
}

const saturate = async (connections: number, seconds: number): Promise<number> => {
  const load = await runSockets({ url, connections, seconds, next })
  return (load.latencies.get(requests.status) ?? []).length / load.seconds
}

/** Waits until the server has responded to everything before, because it accepts and responds to a request. */
const untilIdle = async (): Promise<void> => {
  for (;;) {
    const { latencies } = await runSockets({ url, connections: 1, seconds: LIMIT, requests: 1, next })
    if (latencies.has(requests.status)) return
    await sleep(PAUSE)
  }
}

/** A cheap request, whose response shows that the server has accepted the connection. */
const PROBE = rawRequest({ method: 'GET', path: '/', headers: {} })

const openConnection = async (): Promise<Connection> => {
  const connection = new Connection(url)
  await new Promise(resolve => connection.send(PROBE, resolve))
  return connection
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))
const nextTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

const offer = async (rate: number, seconds: number): Promise<OpenLoopResult> => {
  await untilIdle()
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, openConnection))
  const free = [...connections]
  const latencies: number[] = []
  const rejections: number[] = []
  /** When pending requests were due. */
  const pending = new Map<Connection, number>()
  const total = Math.ceil(rate * seconds)
  let sent = 0
  let succeeded = 0

  const begin = performance.now()
  const end = begin + seconds * 1_000
  const dueAt = (index: number): number => begin + (index / rate) * 1_000

  const send = (connection: Connection): void => {
    const due = dueAt(sent)
    sent += 1
    pending.set(connection, due)
    connection.send(next(), status => {
      const now = performance.now()
      pending.delete(connection)
      free.push(connection)
      if (status === OVERLOADED) {
        rejections.push(now - due)
        return
      }
      if (status !== requests.status) throw new Error(`a response had status ${status}`)
      latencies.push(now - due)
      if (now < end) succeeded += 1
    })
  }
  const sendDue = (): void => {
    const now = performance.now()
    while (sent < total && dueAt(sent) <= now) {
      const connection = free.pop()
      if (connection === undefined) return
      send(connection)
    }
  }

  let stall = 0
  let idle = 0
  let turn = begin
  while (turn < end) {
    const done = sent + latencies.length + rejections.length
    sendDue()
    if (free.length > 0 && dueAt(sent) - performance.now() > NAP) Atomics.wait(sleeper, 0, 0, NAP)
    await nextTurn()
    const now = performance.now()
    stall = Math.max(stall, now - turn)
    if (done === sent + latencies.length + rejections.length) idle += now - turn
    turn = now
  }
  sendDue()
  // Either the server leaves no connection free, or the generator has no time.
  const isTooSlow = sent < total && idle < (end - begin) * IDLE
  const unsent = isTooSlow ? 0 : total - sent
  const offered = (sent + unsent) / seconds
  while (pending.size > 0 && performance.now() < end + PATIENCE) await nextTurn()

  const now = performance.now()
  for (const connection of connections) connection.close()
  const unanswered = [
    ...pending.values(),
    ...Array.from({ length: unsent }, (_, index) => dueAt(sent + index)),
  ].map(due => now - due)
  return {
    offered,
    succeeded: succeeded / seconds,
    rejected: rejections.length / seconds,
    p99: quantile([...latencies, ...unanswered], 0.99),
    rejectedP99: rejections.length === 0 ? null : quantile(rejections, 0.99),
    stall,
  }
}

process.on('message', async (order: Order) => {
  const { seconds } = order
  process.send?.(
    order.kind === 'offer' ? await offer(order.rate, seconds) : await saturate(order.connections, seconds),
  )
})
process.on('disconnect', () => process.exit())
