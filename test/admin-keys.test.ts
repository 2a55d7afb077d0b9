/** Admin keys of the store. Each file can also be run alone. */
import './admin-keys/authentication.test.ts'
import './admin-keys/races.test.ts'
import './admin-keys/routes.test.ts'
import './admin-keys/scopes.test.ts'
