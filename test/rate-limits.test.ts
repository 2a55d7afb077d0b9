/** Rate limits and the login throttle. Each file can also be run alone. */
import './rate-limits/in-memory.test.ts'
import './rate-limits/limits.test.ts'
import './rate-limits/login-throttle.test.ts'
import './rate-limits/many-addresses.test.ts'
