/** The embedded engine. Each file runs by itself as well. */
import './storage/rate-limits.test.ts'
import './storage/sqlite.test.ts'
import './storage/sqlite-file.test.ts'
import './storage/sqlite-events.test.ts'
import './storage/sqlite-lists.test.ts'
import './storage/sqlite-plans.test.ts'
import './storage/sqlite-sharing.test.ts'
