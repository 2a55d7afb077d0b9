/** The service with a store that discards last requests. */
import { openStorage } from '../../src/storage/open.ts'
import { listen } from './listen.ts'

await listen(async ({ storage, databaseConnections }) => ({
  storage: {
    ...(await openStorage(storage, databaseConnections, [])),
    lastRequests: { noteLastRequests: async () => undefined },
  },
}))
