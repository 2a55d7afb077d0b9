/** Connections to PostgreSQL. Each file can also be run alone. */
import './postgres/process-leases.test.ts'
import './postgres/requirements.test.ts'
import './postgres/round-trips.test.ts'
import './postgres/shared-connections.test.ts'
import './postgres/versions.test.ts'
