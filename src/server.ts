/** The process edge: configuration in, signals in, exit code out. */
import { existsSync } from 'node:fs'
import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { ConfigError, loadConfig } from './config.ts'

/** Milliseconds that requests in flight get beyond the drain's delay before the process ends all the same. */
const GRACE = 10_000

const start = async (): Promise<void> => {
  if (existsSync('.env')) process.loadEnvFile('.env')
  const config = loadConfig(process.env)
  const app = await buildApp(config)
  closeWithGrace({ delay: config.drainDelay + GRACE, logger: false }, async ({ err, signal }) => {
    if (err) app.log.fatal({ err }, 'unexpected failure, shutting down')
    else app.log.info(`${signal} received, draining`)
    await app.drain()
    await app.close()
    app.log.info('stopped')
  })
  await app.listen({ host: config.host, port: config.port })
  if (config.adminKeys.length === 0) app.log.warn('ADMIN_KEY is not set: every admin route answers 401')
}

try {
  await start()
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : (error as Error).stack}\n`)
  process.exit(1)
}
