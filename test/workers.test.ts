/** Several workers on one SQLite file. Each file can also be run alone. */
import './workers/revocation.test.ts'
import './workers/threads.test.ts'
