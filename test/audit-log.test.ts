/** The audit log. Each file can also be run alone. */
import './audit-log/client-disconnect.test.ts'
import './audit-log/event-streams.test.ts'
import './audit-log/events.test.ts'
import './audit-log/followers.test.ts'
import './audit-log/login-throttle.test.ts'
import './audit-log/pagination.test.ts'
import './audit-log/rejected-requests.test.ts'
