/** Servers of PostgreSQL that fail, hang, restart or are promoted. */
import '../postgres/command-line.test.ts'
import '../postgres/failover.test.ts'
import '../postgres/frozen-instances.test.ts'
import '../postgres/outages.test.ts'
import '../postgres/pgbouncer.test.ts'
import '../postgres/replica.test.ts'
import '../postgres/tls.test.ts'
import '../postgres/workers.test.ts'
