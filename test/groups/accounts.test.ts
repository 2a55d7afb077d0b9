/** Accounts and their administration. */
import '../accounts.test.ts'
import '../admin.test.ts'
