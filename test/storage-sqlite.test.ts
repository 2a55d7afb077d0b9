/** SQLite storage. Each file can also be run alone. */
import './storage/feature-migrations.test.ts'
import './storage/invalidation-ring.test.ts'
import './storage/sqlite-events.test.ts'
import './storage/sqlite-lists.test.ts'
import './storage/sqlite.test.ts'
import './storage/writes.test.ts'
