/** The service with parts of its own, for what production has no setting for; put together as the server's is. */
import { type AppOptions, buildApp } from '../../src/app.ts'
import { type Config, loadConfig } from '../../src/config/config.ts'

export const listen = async (parts: (config: Config) => Promise<AppOptions>): Promise<void> => {
  const config = loadConfig(process.env)
  const app = await buildApp(config, await parts(config))
  await app.listen({ host: config.host, port: config.port })
}
