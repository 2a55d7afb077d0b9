/** The stores, their servers and their migrations. */
import '../postgres.test.ts'
import '../releases.test.ts'
import '../storage-postgres.test.ts'
import '../storage-sqlite.test.ts'
