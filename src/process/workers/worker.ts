/** Runs in a worker: its start, its stop, and its log. */
import cluster from 'node:cluster'
import { isMainThread } from 'node:worker_threads'
import type { FastifyListenOptions } from 'fastify'
import type { DestinationStream } from 'pino'
import type { Config } from '../config/config.ts'
import { HAS_REUSE_PORT } from '../config/defaults.ts'
import { STOP_SIGNALS } from '../shutdown.ts'
import {
  type Channel,
  channelToPrimary,
  type Failure,
  type Listening,
  type LogLine,
  STOP,
  type ThreadData,
} from './channel.ts'

/** Where a worker listens, or the only process. For processes, Node balances the connections of port 0, and where the kernel does not. */
export const listenOptions = (
  { host, port, workers }: Config,
  thread: ThreadData | null,
): FastifyListenOptions => ({
  host,
  port: thread?.port ?? port,
  ...(workers > 1 && (thread !== null || port !== 0) && HAS_REUSE_PORT && { reusePort: true }),
})

/**
 * Stops once: on a message of the primary, when the primary is gone, or on SIGTERM. Other signals are ignored, because they reach the
 * primary too.
 */
export const joinPrimary = (channel: Channel) => {
  // Before the worker serves requests, it can exit at once.
  let stop = (): void => process.exit(0)
  let stopping = false
  const stopOnce = (): void => {
    if (!stopping) {
      stopping = true
      stop()
    }
  }
  // A thread receives no signals.
  if (isMainThread)
    for (const signal of STOP_SIGNALS) process.on(signal, signal === 'SIGTERM' ? stopOnce : () => undefined)
  channel.onMessage(message => {
    if (message === STOP) stopOnce()
  })
  const { worker } = cluster
  worker?.once('disconnect', () => {
    // Otherwise Node ends a worker without a primary at once, and pending writes are lost.
    worker.exitedAfterDisconnect = true
    stopOnce()
  })
  return {
    onStop(newStop: () => void): void {
      stop = newStop
    },
    /** @param port at which the worker listens. */
    listening: (port: number): void => channel.send({ listening: port } satisfies Listening),
  }
}

/** The log of a worker thread: the primary writes the lines of all. */
export const logThroughPrimary = (channel: Channel): DestinationStream => ({
  write: line => channel.send({ line } satisfies LogLine),
})

export const printFailure = (reason: string): void => void process.stderr.write(`${reason}\n`)

/** Prints why this process cannot start. A worker lets the primary print it, so that a reason of all workers appears once. */
export const reportFailure = async (reason: string): Promise<void> => {
  const channel = channelToPrimary()
  if (channel === null) return printFailure(reason)
  const { promise, resolve } = Promise.withResolvers<void>()
  channel.send({ failure: reason } satisfies Failure, sent => {
    // The primary has ended meanwhile.
    if (!sent) printFailure(reason)
    resolve()
  })
  await promise
}
