/**
 * One machine, several processes (`WORKERS`): the first one answers nobody, it keeps the others running. They share
 * nothing but the port and the database.
 */
import cluster, { type Worker } from 'node:cluster'
import type { FastifyListenOptions } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from './config.ts'

/** Milliseconds until a worker that was lost is replaced. */
const RESTART_DELAY = 500

/** What the processes say to each other. */
const LISTENING = 'listening'
const STOP = 'stop'

/** Where the kernel spreads connections over sockets that share a port; elsewhere, and for a port yet to be chosen, Node does. */
const KERNEL_SPREADS = ['linux', 'freebsd'].includes(process.platform)

export const listenOptions = ({ host, port, workers }: Config): FastifyListenOptions => ({
  host,
  port,
  ...(workers > 1 && port !== 0 && KERNEL_SPREADS && { reusePort: true }),
})

/** In a worker: tells the first process that this one listens, and calls `stop` when that one says so or is gone. */
export const joinSupervisor = (stop: () => void): void => {
  process.on('message', message => {
    if (message === STOP) stop()
  })
  process.on('disconnect', stop)
  process.send?.(LISTENING)
}

/** In the first process: starts the workers, replaces those that end, and stops them all when it is told to stop. */
export const supervise = ({ workers: count }: Config, logger: Logger): void => {
  const workers = new Set<Worker>()
  let listened = false
  let stopping = false
  let exitCode = 0

  const stop = (): void => {
    // The second time, whoever asks does not want to wait.
    if (stopping) process.exit(1)
    stopping = true
    for (const worker of workers) if (worker.isConnected()) worker.send(STOP)
  }

  const ended = (worker: Worker, code: number | null, signal: string | null): void => {
    workers.delete(worker)
    if (!stopping && listened) {
      logger.error({ worker: worker.process.pid, code, signal }, 'a worker ended, another takes its place')
      setTimeout(start, RESTART_DELAY)
      return
    }
    // None could start: the reason is on standard error, and will not go by itself.
    if (!stopping) stop()
    if (code !== 0) exitCode = 1
    if (workers.size === 0) process.exit(exitCode)
  }

  const start = (): void => {
    if (stopping) return
    const worker = cluster.fork()
    workers.add(worker)
    worker.on('message', message => {
      if (message === LISTENING) listened = true
    })
    worker.once('exit', (code, signal) => ended(worker, code, signal))
  }

  process.on('SIGTERM', stop).on('SIGINT', stop)
  for (let number = 0; number < count; number += 1) start()
}
