/** Processes that use PostgreSQL: outages, failover, replicas, TLS, workers. Each file can also be run alone. */
import './postgres/failover.test.ts'
import './postgres/frozen-instances.test.ts'
import './postgres/outages.test.ts'
import './postgres/replica.test.ts'
import './postgres/round-trips.test.ts'
import './postgres/shared-connections.test.ts'
import './postgres/tls.test.ts'
import './postgres/workers.test.ts'
