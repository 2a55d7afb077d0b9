/** The service with a store that is told of last requests and forgets them. */
import { openStorage } from '../../src/storage/open.ts'
import { listen } from './listen.ts'

await listen(async ({ storage, databaseConnections }) => ({
  storage: {
    ...(await openStorage(storage, databaseConnections)),
    lastRequests: { noteLastRequests: async () => undefined },
  },
}))
