/** Entry point of the service: reads the configuration, starts one process or several, and stops on signals. */
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { DestinationStream, Logger } from 'pino'
import { releaseIdleMemory } from '#base/idle-memory'
import { ConfigError } from '#base/settings/readers'
import { allFeatures } from '#features/built-in'
import { ListenError, toListenError } from '#http/listen-error'
import { type Config, loadConfig } from '#process/config/config'
import { loadEnvironment } from '#process/config/read-settings'
import { createLogger, standardOutput } from '#process/logging/logging'
import { openWorkerChannel } from '#process/metrics/worker-metrics'
import { SHUTDOWN, STOP_SIGNALS } from '#process/shutdown'
import type { Tracing } from '#process/tracing/tracing'
import {
  type ChannelToPrimary,
  channelToPrimary,
  type ThreadData,
  threadData,
} from '#process/workers/channel'
import { runPrimary } from '#process/workers/primary'
import { joinPrimary, listenOptions, logThroughPrimary, reportFailure } from '#process/workers/worker'
import type { AppOptions } from './app.ts'

/** @returns the message of an error that the operator can fix, the stack of a bug. */
const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof ConfigError || error instanceof ListenError) return error.message
  return 'code' in error ? `Gatehouse cannot start: ${error.message}` : String(error.stack)
}

const logWarnings = ({ warnings }: Config, logger: Pick<Logger, 'warn'>): void => {
  for (const warning of warnings) logger.warn(warning)
}

/**
 * For the next start. Node itself does so when the process ends, but not if it is killed. Takes 0.1 to 0.4 s at the first start of a
 * version and a millisecond later, so it happens before there are requests.
 */
const saveCompiledCode = flushCompileCache

/** @returns the port. @throws {ListenError} */
const listen = async (app: FastifyInstance, config: Config, thread: ThreadData | null): Promise<number> => {
  // Separate, because errors of plugins can have the same codes.
  await app.ready()
  saveCompiledCode()
  try {
    await app.listen(listenOptions(config, thread))
    return (app.server.address() as AddressInfo).port
  } catch (error) {
    throw toListenError(error, config, { host: 'HOST', port: 'PORT' })
  }
}

/** Loads OpenTelemetry only where traces are configured. */
const openTracing = async (config: Config, logStream?: DestinationStream): Promise<Tracing | null> => {
  if (config.tracesUrl === null) return null
  const { startTracing } = await import('#process/tracing/tracing')
  return startTracing(config.tracesUrl, createLogger(config, logStream))
}

/** What differs in a worker: the primary has its metrics, and has the database of a thread open and writes its log. */
const optionsOfWorker = async (
  channel: ChannelToPrimary | null,
  thread: ThreadData | null,
): Promise<AppOptions> => {
  if (channel === null) return {}
  const workerChannel = openWorkerChannel(channel)
  if (thread === null) return { workerChannel }
  const { joinSharedStore } = await import('#core/store/sqlite')
  const storage = await joinSharedStore(thread.store, allFeatures())
  return { workerChannel, storage, logStream: logThroughPrimary(channel) }
}

const serve = async (config: Config): Promise<void> => {
  const channel = channelToPrimary()
  const thread = threadData()
  const primary = channel && joinPrimary(channel)
  const optionsAsWorker = await optionsOfWorker(channel, thread)
  const tracing = await openTracing(config, optionsAsWorker.logStream)
  const { buildApp } = await import('./app.ts')
  const app = await buildApp(config, { ...optionsAsWorker, tracing })
  const options = {
    delay: config.drainDelay + SHUTDOWN.forcedExit,
    logger: false as const,
    // A worker handles signals itself, so that several of them and the primary's message cause one stop.
    skip: primary === null ? [] : [...STOP_SIGNALS],
  }
  const { close } = closeWithGrace(options, async ({ err, signal = 'stop' }) => {
    if (err) app.log.fatal({ err }, 'unexpected failure, shutting down')
    else app.log.info(`${signal} received, draining`)
    try {
      await app.drain()
      const cut = setTimeout(() => app.server.closeAllConnections(), SHUTDOWN.inFlight)
      await app.close()
      clearTimeout(cut)
      await tracing?.close()
      app.log.info('stopped')
    } finally {
      await standardOutput().drain()
    }
  })
  primary?.onStop(close)
  // With several processes the primary logs them once.
  if (primary === null) logWarnings(config, app.log)
  const port = await listen(app, config, thread)
  primary?.listening(port)
}

// Without a listener, a write to a full or closed standard error would end the process.
process.stderr.on('error', () => undefined)
try {
  const features = allFeatures()
  const config = loadConfig(loadEnvironment(), features)
  if (config.workers > 1 && channelToPrimary() === null) {
    const output = standardOutput()
    logWarnings(config, createLogger(config, output))
    await runPrimary(config, output)
    saveCompiledCode()
  } else await serve(config)
  releaseIdleMemory()
} catch (error) {
  await reportFailure(explain(error))
  await standardOutput().drain()
  process.exit(1)
}
