/** Gatehouse in other applications, and as a package. Each file can also be run alone. */
import './embedding/events.test.ts'
import './embedding/mails.test.ts'
