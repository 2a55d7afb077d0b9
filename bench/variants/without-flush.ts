/** The service with a store that discards last requests. */

import { openStorage } from '#core/store/open'
import { allFeatures } from '#features/built-in'
import { listen } from './listen.ts'

await listen(async ({ storage, databaseConnections }) => ({
  storage: {
    ...(await openStorage(storage, databaseConnections, allFeatures())),
    lastRequests: { recordLastRequests: async () => undefined },
  },
}))
