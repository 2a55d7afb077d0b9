/** The service with a store that discards last requests. */
import { allFeatures } from '#features/built-in'
import { openStorage } from '#storage/open'
import { listen } from './listen.ts'

await listen(async ({ storage, databaseConnections }) => ({
  storage: {
    ...(await openStorage(storage, databaseConnections, allFeatures())),
    lastRequests: { recordLastRequests: async () => undefined },
  },
}))
