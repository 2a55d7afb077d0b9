/**
 * Several workers on one machine (`WORKERS`), which share the port and the database: threads with SQLite, processes with PostgreSQL.
 * The primary serves no requests, but starts and replaces the workers.
 */
import { metricsOf } from '#feature/assembly'
import { allFeatures } from '#features/built-in'
import type { Config } from '../config/config.ts'
import type { LogOutput } from '../logging/log-output.ts'
import { createLogger } from '../logging/logging.ts'
import { METRICS } from '../metrics/declarations.ts'
import { openMetricsServer } from '../metrics/metrics-server.ts'
import { WorkerMetrics } from '../metrics/worker-metrics.ts'
import { SHUTDOWN, STOP_SIGNALS } from '../shutdown.ts'
import { type Failure, isFailure, isListening, STOP } from './channel.ts'
import { processes, threads, type WorkerEnd, type WorkerHandle } from './kinds.ts'
import { printFailure } from './worker.ts'

/** Milliseconds until a lost worker is replaced. */
const RESTART_DELAY = 500

/**
 * Runs in the primary: starts the workers, replaces those that end, and stops all of them on a signal.
 * @throws {ListenError} if the address of the metrics, or with SQLite that of the service, cannot be used; {Error} if the SQLite file
 * cannot be opened. Then no worker has started.
 */
export const runPrimary = async (config: Config, output: LogOutput): Promise<void> => {
  const { workers: count, drainDelay, storage } = config
  const logger = createLogger(config, output)
  const metrics = new WorkerMetrics({ ...METRICS, ...metricsOf(allFeatures()) })
  const kind = storage.engine === 'sqlite' ? await threads(storage, config, output) : processes(output)
  // The end of the primary closes the listener.
  await openMetricsServer(config.metrics, () => metrics.text(), logger)
  const workers = new Set<WorkerHandle>()
  /** Reasons why workers could not start. Until a worker has listened, each is printed once. */
  const reasons = new Set<string>()
  let { port } = config
  let listened = false
  let stopping = false
  let exitCode = 0

  const exit = async (code: number): Promise<void> => {
    await kind.close().catch(err => logger.error({ err }, 'the database could not be closed'))
    await output.drain()
    process.exit(code)
  }

  const kill = (): void => {
    for (const worker of workers) worker.kill()
    void output.drain().then(() => process.exit(1))
  }

  const stop = (): void => {
    // The second signal kills.
    if (stopping) return kill()
    stopping = true
    for (const worker of workers) worker.send(STOP)
    setTimeout(kill, drainDelay + SHUTDOWN.workerKill).unref()
    if (workers.size === 0) void exit(exitCode)
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
    else if (workers.size === 0) void exit(exitCode)
  }

  const onFailure = ({ failure }: Failure): void => {
    if (listened || !reasons.has(failure)) printFailure(failure)
    reasons.add(failure)
  }

  const onListening = (actualPort: number): void => {
    const isFirst = !listened
    listened = true
    if (!isFirst || !waitsForPort) return
    port = actualPort
    startOthers()
  }

  const onEnd = (worker: WorkerHandle, { reason, succeeded }: WorkerEnd): void => {
    workers.delete(worker)
    metrics.remove(worker)
    if (!(stopping && succeeded)) onUnexpectedEnd({ worker: worker.id, ...reason })
    else if (workers.size === 0) void exit(exitCode)
  }

  const start = (): void => {
    if (stopping) return
    const worker = kind.start(port)
    workers.add(worker)
    metrics.add(worker)
    worker.onMessage(message => {
      if (isListening(message)) onListening(message.listening)
      else if (isFailure(message)) onFailure(message)
    })
    worker.onEnd(end => onEnd(worker, end))
  }

  const startOthers = (): void => {
    for (let number = 1; number < count; number += 1) start()
  }

  // Threads cannot share a port that the system chooses, before it has.
  const waitsForPort = kind.needsPort && port === 0
  for (const signal of STOP_SIGNALS) process.on(signal, stop)
  start()
  if (!waitsForPort) startOthers()
}
