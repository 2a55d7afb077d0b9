/** The shared engine. Each file runs by itself as well. */
import './storage/postgres.test.ts'
import './storage/postgres-events.test.ts'
import './storage/postgres-clean-up.test.ts'
import './storage/postgres-plans.test.ts'
