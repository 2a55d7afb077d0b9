/** Concurrent requests on one account. Each file can also be run alone. */
import './races/account-races.test.ts'
import './races/deletion-races.test.ts'
