/** The service with a store that is told of last requests and forgets them. */
import { openSqliteStorage } from '../../src/storage/sqlite/storage.ts'
import { listen } from './listen.ts'

await listen(async ({ databaseFile }) => ({
  storage: {
    ...(await openSqliteStorage(databaseFile)),
    lastRequests: { noteLastRequests: async () => undefined },
  },
}))
