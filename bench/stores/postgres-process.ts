/** Runs a temporary PostgreSQL until the bench exits, and sends its URL to the bench. */
import { startPostgres } from '../../scripts/postgres-server.ts'

const starting = startPostgres({ durable: true })
process.once('disconnect', async () => (await starting).stop())
const { url } = await starting
if (process.connected) process.send?.(url)
