/**
 * Several processes on one machine (`WORKERS`): the primary serves no requests, but starts and replaces the workers. Workers
 * share only the port and the database.
 */
import cluster, { type Worker } from 'node:cluster'
import type { Readable } from 'node:stream'
import type { FastifyListenOptions } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from './config/config.ts'
import type { LogOutput } from './logging/log-output.ts'
import { createLogger } from './logging/logging.ts'
import { openMetricsServer } from './metrics/metrics-server.ts'
import { WorkerMetrics } from './metrics/worker-metrics.ts'
import { SHUTDOWN } from './shutdown.ts'

/** Milliseconds until a lost worker is replaced. */
const RESTART_DELAY = 500

/** Signals that terminals and service managers send to stop the service, often to the whole process group. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const

/** Messages between primary and workers. */
const LISTENING = 'listening'
const STOP = 'stop'

/** The message of a worker that cannot start. */
interface Failure {
  readonly failure: string
}

const isFailure = (message: unknown): message is Failure =>
  typeof message === 'object' && message !== null && 'failure' in message

/** Platforms whose kernel balances connections over sockets with `SO_REUSEPORT`. Elsewhere, and for port 0, Node does. */
const HAS_REUSE_PORT = ['linux', 'freebsd'].includes(process.platform)

export const listenOptions = ({ host, port, workers }: Config): FastifyListenOptions => ({
  host,
  port,
  ...(workers > 1 && port !== 0 && HAS_REUSE_PORT && { reusePort: true }),
})

/**
 * Runs in a worker. Stops once: on a message of the primary, when the primary is gone, or on SIGTERM. Other signals are ignored,
 * because they reach the primary too.
 */
export const joinPrimary = () => {
  // Before the worker serves requests, it can exit at once.
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
    // Otherwise Node ends a worker without a primary at once, and pending writes are lost.
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

const printFailure = (reason: string): void => void process.stderr.write(`${reason}\n`)

/** Prints why this process cannot start. A worker lets the primary print it, so that a reason of all workers appears once. */
export const reportFailure = async (reason: string): Promise<void> => {
  if (!(cluster.isWorker && process.connected)) return printFailure(reason)
  const { promise, resolve } = Promise.withResolvers<void>()
  process.send?.({ failure: reason } satisfies Failure, error => {
    // The primary has ended meanwhile.
    if (error !== null) printFailure(reason)
    resolve()
  })
  await promise
}

/** Forwards a worker's log, line by line. */
const forwardLog = (log: Readable, output: LogOutput): void => {
  let start = ''
  log.setEncoding('utf8')
  log.on('data', (chunk: string) => {
    const lines = (start + chunk).split('\n')
    start = lines.pop() ?? ''
    for (const line of lines) output.write(`${line}\n`)
  })
}

/** Serves the metrics of all workers at `METRICS_PORT`, if it is set. The end of the primary closes the listener. */
const serveMetrics = async ({ metrics: { host, port } }: Config, metrics: WorkerMetrics, logger: Logger) => {
  if (port === null) return
  const onFailure = (err: unknown) => logger.error({ err }, 'metrics could not be read')
  const { url } = await openMetricsServer({ host, port, text: () => metrics.text(), onFailure })
  logger.info(`Metrics at ${url}`)
}

/**
 * Runs in the primary: starts the workers, replaces those that end, and stops all of them on a signal.
 * @throws {ListenError} if the address of the metrics cannot be used; then no worker has started.
 */
export const runPrimary = async (config: Config, output: LogOutput): Promise<void> => {
  const { workers: count, drainDelay } = config
  const logger = createLogger(config, output)
  // Only the primary writes the log, so that lines do not interleave, and a starting worker does not make the output blocking
  // for all (libuv does so with inherited descriptors).
  cluster.setupPrimary({ stdio: ['inherit', 'pipe', 'inherit', 'ipc'] })
  const metrics = new WorkerMetrics()
  await serveMetrics(config, metrics, logger)
  const workers = new Set<Worker>()
  /** Reasons why workers could not start. Until a worker has listened, each is printed once. */
  const reasons = new Set<string>()
  let listened = false
  let stopping = false
  let exitCode = 0

  const exit = (code: number): void => void output.drain().then(() => process.exit(code))

  const kill = (): void => {
    for (const worker of workers) worker.process.kill('SIGKILL')
    exit(1)
  }

  const stop = (): void => {
    // The second signal kills.
    if (stopping) return kill()
    stopping = true
    for (const worker of workers) if (worker.isConnected()) worker.send(STOP)
    setTimeout(kill, drainDelay + SHUTDOWN.workerKill).unref()
    if (workers.size === 0) exit(exitCode)
  }

  const onUnexpectedEnd = (reason: object): void => {
    if (!stopping && listened) {
      logger.error(reason, 'a worker exited and is replaced')
      setTimeout(start, RESTART_DELAY)
      return
    }
    exitCode = 1
    // No worker has ever listened: the reason is on standard error, and restarting would not help.
    if (!stopping) stop()
    else if (workers.size === 0) exit(exitCode)
  }

  const onFailure = ({ failure }: Failure): void => {
    if (listened || !reasons.has(failure)) printFailure(failure)
    reasons.add(failure)
  }

  const start = (): void => {
    if (stopping) return
    const worker = cluster.fork()
    workers.add(worker)
    metrics.add(worker)
    worker.on('message', message => {
      if (message === LISTENING) listened = true
      else if (isFailure(message)) onFailure(message)
    })
    if (worker.process.stdout !== null) forwardLog(worker.process.stdout, output)
    const onEnd = (reason: object, succeeded: boolean): void => {
      if (!workers.delete(worker)) return
      metrics.remove(worker)
      if (!(stopping && succeeded)) onUnexpectedEnd({ worker: worker.process.pid, ...reason })
      else if (workers.size === 0) exit(exitCode)
    }
    // 'close' comes after 'exit', when the whole log has arrived.
    worker.process.once('close', (code, signal) => onEnd({ code, signal }, code === 0))
    // A process that could not be started has no 'close'.
    worker.once('error', err => onEnd({ err }, false))
  }

  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  for (let number = 0; number < count; number += 1) start()
}
