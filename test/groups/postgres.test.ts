/** The store on PostgreSQL, and its servers. */
import '../postgres.test.ts'
import '../storage-postgres.test.ts'
