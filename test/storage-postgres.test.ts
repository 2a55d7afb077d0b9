/** The shared engine. Each file runs by itself as well. */
import './storage/postgres.test.ts'
import './storage/postgres-events.test.ts'
import './storage/postgres-expired-rows.test.ts'
import './storage/postgres-plans.test.ts'
