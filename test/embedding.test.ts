/** Gatehouse in other applications. Each file can also be run alone. */
import './embedding/clients.test.ts'
import './embedding/events.test.ts'
import './embedding/mails.test.ts'
