/** Mails. Each file runs by itself as well. */
import './mail/flooding.test.ts'
import './mail/mail.test.ts'
import './mail/file-transport.test.ts'
import './mail/retries.test.ts'
