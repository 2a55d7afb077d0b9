/** Who may do what: sessions, gates, limits. */
import '../auth.test.ts'
import '../auth-authenticator.test.ts'
import '../gates.test.ts'
import '../rate-limits.test.ts'
