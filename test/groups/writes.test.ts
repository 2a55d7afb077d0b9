/** Races of writes, and writes of many users. */
import '../bulk-users.test.ts'
import '../races.test.ts'
