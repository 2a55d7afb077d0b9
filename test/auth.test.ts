/** Tokens, sessions, and the timestamp of the last request. Each file runs by itself as well. */
import './auth/clock.test.ts'
import './auth/last-requests.test.ts'
import './auth/session-ends.test.ts'
import './auth/session-restarts.test.ts'
import './auth/sessions.test.ts'
import './auth/tokens.test.ts'
import './auth/units.test.ts'
