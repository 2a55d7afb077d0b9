/** What happens at once, and again and again. Each file runs by itself as well. */
import './races/account-races.test.ts'
import './races/ending-races.test.ts'
import './races/login-throttle.test.ts'
