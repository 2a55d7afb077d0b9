/** Mails. Each file can also be run alone. */
import './mail/file-transport.test.ts'
import './mail/flooding.test.ts'
import './mail/messages.test.ts'
import './mail/retries.test.ts'
import './mail/layout.test.ts'
import './mail/template-files.test.ts'
