/** Sign-ups at the cost of everything but the hash. */
import { listen } from './listen.ts'

const HASH = `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`

await listen(async () => ({
  hashing: { hash: async () => HASH, verify: async () => true, close: async () => undefined },
}))
