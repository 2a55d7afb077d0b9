/** Starts the service with options of `buildApp` for which there is no setting. */

import { allFeatures } from '#features/built-in'
import { type Config, loadConfig } from '#process/config/config'
import { type AppOptions, buildApp } from '../../src/app.ts'

export const listen = async (options: (config: Config) => Promise<AppOptions>): Promise<void> => {
  const config = loadConfig(process.env, allFeatures())
  const app = await buildApp(config, await options(config))
  await app.listen({ host: config.host, port: config.port })
}
