/** User administration: create, change, delete, list, search. Each file can also be run alone. */
import './admin/create-users.test.ts'
import './admin/delete-users.test.ts'
import './admin/introspection.test.ts'
import './admin/status.test.ts'
import './admin/update-users.test.ts'
import './admin/user-filters.test.ts'
import './admin/user-lists.test.ts'
import './admin/user-search.test.ts'
