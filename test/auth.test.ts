/** Tokens, sessions and last requests. Each file can also be run alone. */
import './auth/clock-changes.test.ts'
import './auth/last-requests.test.ts'
import './auth/restarts.test.ts'
import './auth/session-expiry.test.ts'
import './auth/sessions.test.ts'
import './auth/tokens.test.ts'
import './auth/units.test.ts'
import './auth/refused-writes.test.ts'
