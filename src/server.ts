/** The process edge: configuration in, signals in, exit code out. */
import cluster from 'node:cluster'
import { existsSync } from 'node:fs'
import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import { type Config, ConfigError, loadConfig } from './config/config.ts'
import { createLogger, standardOutput } from './logging/logging.ts'
import { joinPrimary, listenOptions, runPrimary, STOP_SIGNALS } from './workers.ts'

/** Milliseconds after the drain's delay: for requests in flight, and for the whole stop. */
const IN_FLIGHT = 10_000
const GRACE = 15_000

/** What the operator can mend is said in a sentence; what is a fault of the code has a stack. */
const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof ConfigError) return error.message
  return 'code' in error ? `Gatehouse cannot start: ${error.message}` : String(error.stack)
}

const warn = ({ warnings }: Config, logger: Pick<Logger, 'warn'>): void => {
  for (const warning of warnings) logger.warn(warning)
}

const serve = async (config: Config): Promise<void> => {
  const primary = cluster.isWorker ? joinPrimary() : null
  const app = await buildApp(config)
  const options = {
    delay: config.drainDelay + GRACE,
    logger: false as const,
    // Taken by the worker itself: several of them, and the primary's word, are one stop.
    skip: primary === null ? [] : [...STOP_SIGNALS],
  }
  const { close } = closeWithGrace(options, async ({ err, signal = 'stop' }) => {
    if (err) app.log.fatal({ err }, 'unexpected failure, shutting down')
    else app.log.info(`${signal} received, draining`)
    try {
      await app.drain()
      // Whoever still has not sent a request whole, or does not read the answer, must not cost what close() writes.
      const cut = setTimeout(() => app.server.closeAllConnections(), IN_FLIGHT)
      await app.close()
      clearTimeout(cut)
      app.log.info('stopped')
    } finally {
      await standardOutput().drain()
    }
  })
  primary?.onStop(close)
  // With several processes the first one says it, once.
  if (primary === null) warn(config, app.log)
  await app.listen(listenOptions(config))
  primary?.listening()
}

// Else a standard error that is full or closed would end the process with the first line to it.
process.stderr.on('error', () => undefined)
try {
  if (existsSync('.env')) process.loadEnvFile('.env')
  const config = loadConfig(process.env)
  if (config.workers > 1 && cluster.isPrimary) {
    const output = standardOutput()
    warn(config, createLogger(config, output))
    runPrimary(config, output)
  } else await serve(config)
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  await standardOutput().drain()
  process.exit(1)
}
