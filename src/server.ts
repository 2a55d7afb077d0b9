/** The process edge: configuration in, signals in, exit code out. */
import cluster from 'node:cluster'
import { existsSync } from 'node:fs'
import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { type Config, ConfigError, loadConfig } from './config.ts'
import { createLogger } from './logging.ts'
import { joinSupervisor, listenOptions, supervise } from './workers.ts'

/** Milliseconds that requests in flight get beyond the drain's delay, and that all of the stop may take. */
const IN_FLIGHT = 10_000
const GRACE = 15_000

/** What the operator can mend is said in a sentence; what is a fault of the code has a stack. */
const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof ConfigError) return error.message
  return 'code' in error ? `Gatehouse cannot start: ${error.message}` : String(error.stack)
}

const serve = async (config: Config): Promise<void> => {
  const app = await buildApp(config)
  const options = {
    delay: config.drainDelay + GRACE,
    logger: false,
    // A terminal sends it to the workers too, which the first process tells to stop.
    skip: cluster.isWorker ? ['SIGINT' as const] : [],
  } as const
  const { close } = closeWithGrace(options, async ({ err, signal = 'stop' }) => {
    if (err) app.log.fatal({ err }, 'unexpected failure, shutting down')
    else app.log.info(`${signal} received, draining`)
    await app.drain()
    // Whoever still has not sent a request whole, or does not read the answer, must not cost what close() writes.
    const cut = setTimeout(() => app.server.closeAllConnections(), IN_FLIGHT)
    await app.close()
    clearTimeout(cut)
    app.log.info('stopped')
  })
  await app.listen(listenOptions(config))
  if (cluster.isWorker) {
    process.on('SIGINT', () => undefined)
    let stopping = false
    joinSupervisor(() => {
      if (!stopping) close()
      stopping = true
    })
  }
  if (config.adminKeys.length === 0) app.log.warn('ADMIN_KEY is not set: every admin route answers 401')
}

try {
  if (existsSync('.env')) process.loadEnvFile('.env')
  const config = loadConfig(process.env)
  if (config.workers > 1 && cluster.isPrimary) supervise(config, createLogger(config))
  else await serve(config)
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exit(1)
}
