/** Starts the service with options of `buildApp` for which there is no setting. */
import { type AppOptions, buildApp } from '../../src/app.ts'
import { allFeatures } from '../../src/built-in-features.ts'
import { type Config, loadConfig } from '../../src/config/config.ts'

export const listen = async (options: (config: Config) => Promise<AppOptions>): Promise<void> => {
  const config = loadConfig(process.env, allFeatures())
  const app = await buildApp(config, await options(config))
  await app.listen({ host: config.host, port: config.port })
}
