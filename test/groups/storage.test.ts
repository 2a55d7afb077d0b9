/** The store on SQLite, and its migrations. */
import '../releases.test.ts'
import '../storage-sqlite.test.ts'
