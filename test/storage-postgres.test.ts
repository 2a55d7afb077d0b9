/** PostgreSQL storage. Each file can also be run alone. */
import './storage/copy.test.ts'
import './storage/postgres-clean-up.test.ts'
import './storage/postgres-conflicts.test.ts'
import './storage/postgres-event-months.test.ts'
import './storage/postgres-estimates.test.ts'
import './storage/postgres-events.test.ts'
import './storage/postgres-plans.test.ts'
import './storage/postgres.test.ts'
