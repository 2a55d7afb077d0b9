/** Several processes on PostgreSQL, and what they do while it is away. Each file runs by itself as well. */
import './postgres/failover.test.ts'
import './postgres/faults.test.ts'
import './postgres/tls.test.ts'
import './postgres/workers.test.ts'
