/** The service with a store that discards last requests. */
import { allFeatures } from '../../src/built-in-features.ts'
import { openStorage } from '../../src/storage/open.ts'
import { listen } from './listen.ts'

await listen(async ({ storage, databaseConnections }) => ({
  storage: {
    ...(await openStorage(storage, databaseConnections, allFeatures())),
    lastRequests: { recordLastRequests: async () => undefined },
  },
}))
