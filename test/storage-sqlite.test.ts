/** SQLite storage. Each file can also be run alone. */
import './storage/invalidation-ring.test.ts'
import './storage/sqlite-events.test.ts'
import './storage/sqlite-file.test.ts'
import './storage/sqlite-lists.test.ts'
import './storage/sqlite-plans.test.ts'
import './storage/sqlite-sharing.test.ts'
import './storage/sqlite.test.ts'
import './storage/writes.test.ts'
