/** Entry point of the service: reads the configuration, starts one process or several, and stops on signals. */
import cluster from 'node:cluster'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { type Config, ConfigError, loadConfig } from './config/config.ts'
import { loadEnvironment } from './config/read-settings.ts'
import { ListenError, toListenError } from './http/listen-error.ts'
import { createLogger, standardOutput } from './logging/logging.ts'
import { openWorkerChannel } from './metrics/worker-metrics.ts'
import { SHUTDOWN } from './shutdown.ts'
import type { Tracing } from './tracing/tracing.ts'
import { joinPrimary, listenOptions, reportFailure, runPrimary, STOP_SIGNALS } from './workers.ts'

/** @returns the message of an error that the operator can fix, the stack of a bug. */
const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof ConfigError || error instanceof ListenError) return error.message
  return 'code' in error ? `Gatehouse cannot start: ${error.message}` : String(error.stack)
}

const logWarnings = ({ warnings }: Config, logger: Pick<Logger, 'warn'>): void => {
  for (const warning of warnings) logger.warn(warning)
}

/** @throws {ListenError} */
const listen = async (app: FastifyInstance, config: Config): Promise<void> => {
  // Separate, because errors of plugins can have the same codes.
  await app.ready()
  try {
    await app.listen(listenOptions(config))
  } catch (error) {
    throw toListenError(error, config, { host: 'HOST', port: 'PORT' })
  }
}

/** Loads OpenTelemetry only where traces are configured. */
const openTracing = async (config: Config): Promise<Tracing | null> => {
  if (config.tracesUrl === null) return null
  const { startTracing } = await import('./tracing/tracing.ts')
  return startTracing(config.tracesUrl, createLogger(config))
}

const serve = async (config: Config): Promise<void> => {
  const primary = cluster.isWorker ? joinPrimary() : null
  const workerChannel = primary === null ? undefined : openWorkerChannel()
  const tracing = await openTracing(config)
  const app = await buildApp(config, { workerChannel, tracing })
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
  await listen(app, config)
  primary?.listening()
}

// Without a listener, a write to a full or closed standard error would end the process.
process.stderr.on('error', () => undefined)
try {
  const config = loadConfig(loadEnvironment())
  if (config.workers > 1 && cluster.isPrimary) {
    const output = standardOutput()
    logWarnings(config, createLogger(config, output))
    await runPrimary(config, output)
  } else await serve(config)
} catch (error) {
  await reportFailure(explain(error))
  await standardOutput().drain()
  process.exit(1)
}
