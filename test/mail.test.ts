/** Mails. Each file runs by itself as well. */
import './mail/flooding.test.ts'
import './mail/mail.test.ts'
import './mail/outbox.test.ts'
import './mail/retries.test.ts'
