/** The service with a constant password hash, to measure everything else. */
import { dummyHash } from '#core/passwords/our-hash'
import { allFeatures } from '#features/built-in'
import { loadConfig } from '#process/config/config'
import { buildApp } from '../src/app.ts'

const HASH = dummyHash()

const config = loadConfig(process.env, allFeatures())
const app = await buildApp(config, {
  hasher: {
    refusal: () => null,
    hash: async () => HASH,
    verify: async () => true,
    close: async () => undefined,
  },
})
await app.listen({ host: config.host, port: config.port })
