/** The service with a constant password hash, to measure everything else. */
import { dummyHash } from '#core/passwords/formats'
import { listen } from './listen.ts'

const HASH = dummyHash()

await listen(async () => ({
  hasher: {
    refusal: () => null,
    hash: async () => HASH,
    verify: async () => true,
    close: async () => undefined,
  },
}))
