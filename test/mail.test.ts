/** Mails, and how often anything is asked for. Each file runs by itself as well. */
import './mail/client-network.test.ts'
import './mail/limits.test.ts'
import './mail/mail.test.ts'
import './mail/outbox.test.ts'
import './mail/rate-limits.test.ts'
import './mail/retries.test.ts'
