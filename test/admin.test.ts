/** The administration of accounts: one, lists, searches. Each file runs by itself as well. */
import './admin/accounts.test.ts'
import './admin/removal.test.ts'
import './admin/user-filters.test.ts'
import './admin/user-lists.test.ts'
import './admin/user-search.test.ts'
import './admin/users.test.ts'
