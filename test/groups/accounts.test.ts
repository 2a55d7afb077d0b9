/** Accounts and their administration, many at once, and races of their writes. */
import '../accounts.test.ts'
import '../admin.test.ts'
import '../bulk-users.test.ts'
import '../races.test.ts'
