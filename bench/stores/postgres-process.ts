/** Keeps a throw-away PostgreSQL as long as the bench is there, and says where it is. */
import { startPostgres } from '../../scripts/postgres-server.ts'

const starting = startPostgres({ durable: true })
process.once('disconnect', async () => (await starting).stop())
const { url } = await starting
if (process.connected) process.send?.(url)
