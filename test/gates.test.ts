/** The three gates: public, private, admin. Each file can also be run alone. */
import './gates/access-matrix.test.ts'
import './gates/admin-keys.test.ts'
import './gates/csrf.test.ts'
import './gates/leaked-secrets.test.ts'
import './gates/mid-request-changes.test.ts'
import './gates/processing-order.test.ts'
import './gates/scopes.test.ts'
import './gates/token-extraction.test.ts'
