/**
 * One machine, several processes (`WORKERS`): the first one answers nobody, it keeps the others running. They share
 * nothing but the port and the database.
 */
import cluster, { type Worker } from 'node:cluster'
import type { Readable } from 'node:stream'
import type { FastifyListenOptions } from 'fastify'
import type { Config } from './config/config.ts'
import type { LogOutput } from './logging/log-output.ts'
import { createLogger } from './logging/logging.ts'

/** Milliseconds until a worker that was lost is replaced, and until one that does not stop is ended. */
const RESTART_DELAY = 500
const STOP_LIMIT = 20_000

/** What a terminal or a service manager sends to ask for an end, to the whole group of processes at once. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const

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

/**
 * In a worker: stops once, whoever says so first: the primary, its absence, or a SIGTERM to the worker itself. The other
 * signals reach the primary too.
 */
export const joinPrimary = () => {
  // As long as nothing is served there is nothing to finish.
  let stop = (): void => process.exit(0)
  let stopping = false
  const stopOnce = (): void => {
    if (!stopping) {
      stopping = true
      stop()
    }
  }
  for (const signal of STOP_SIGNALS) process.on(signal, signal === 'SIGTERM' ? stopOnce : () => undefined)
  process.on('message', message => {
    if (message === STOP) stopOnce()
  })
  const { worker } = cluster
  worker?.once('disconnect', () => {
    // Else Node ends a worker without its primary at once, with whatever it has not written.
    worker.exitedAfterDisconnect = true
    stopOnce()
  })
  return {
    onStop(newStop: () => void): void {
      stop = newStop
    },
    listening: (): void => void process.send?.(LISTENING),
  }
}

/** Writes what a worker logs, line by line. */
const passOn = (log: Readable, output: LogOutput): void => {
  let start = ''
  log.setEncoding('utf8')
  log.on('data', (chunk: string) => {
    const lines = (start + chunk).split('\n')
    start = lines.pop() ?? ''
    for (const line of lines) output.write(`${line}\n`)
  })
}

/** In the primary: starts the workers, replaces those that end, and stops them all when it is told to stop. */
export const runPrimary = (config: Config, output: LogOutput): void => {
  const { workers: count, drainDelay } = config
  const logger = createLogger(config, output)
  // The log has one writer, so that no line is in the middle of another one, and a worker that starts does not make the
  // output blocking for all (libuv does that to what a child process inherits).
  cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'inherit', 'ipc'] })
  const workers = new Set<Worker>()
  let listened = false
  let stopping = false
  let exitCode = 0

  const exit = (code: number): void => void output.drain().then(() => process.exit(code))

  const kill = (): void => {
    for (const worker of workers) worker.process.kill('SIGKILL')
    exit(1)
  }

  const stop = (): void => {
    // The second time, whoever asks does not want to wait.
    if (stopping) return kill()
    stopping = true
    for (const worker of workers) if (worker.isConnected()) worker.send(STOP)
    setTimeout(kill, drainDelay + STOP_LIMIT).unref()
    if (workers.size === 0) exit(exitCode)
  }

  const ended = (reason: object): void => {
    if (!stopping && listened) {
      logger.error(reason, 'a worker ended, another takes its place')
      setTimeout(start, RESTART_DELAY)
      return
    }
    exitCode = 1
    // None could start: the reason is on standard error, and will not go by itself.
    if (!stopping) stop()
    else if (workers.size === 0) exit(exitCode)
  }

  const start = (): void => {
    if (stopping) return
    const worker = cluster.fork()
    workers.add(worker)
    worker.on('message', message => {
      if (message === LISTENING) listened = true
    })
    if (worker.process.stdout !== null) passOn(worker.process.stdout, output)
    const gone = (reason: object, wellDone = false): void => {
      if (!workers.delete(worker)) return
      if (!(stopping && wellDone)) ended({ worker: worker.process.pid, ...reason })
      else if (workers.size === 0) exit(exitCode)
    }
    // Later than its exit: all that it has logged is there.
    worker.process.once('close', (code, signal) => gone({ code, signal }, code === 0))
    // A process that could not be made has no exit.
    worker.once('error', err => gone({ err }))
  }

  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  for (let number = 0; number < count; number += 1) start()
}
