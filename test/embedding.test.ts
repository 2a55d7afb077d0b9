/** Gatehouse in other applications, and as a package. Each file can also be run alone. */
import './embedding/encapsulation.test.ts'
import './embedding/events.test.ts'
import './embedding/guards.test.ts'
import './embedding/mails.test.ts'
import './embedding/package.test.ts'
import './embedding/saas.test.ts'
