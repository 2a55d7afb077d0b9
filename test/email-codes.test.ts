/** Signing in with mailed codes (docs/design.md, "E-mail codes"). */
import './email-codes/attempts.test.ts'
import './email-codes/enumeration.test.ts'
import './email-codes/magic-link-pages.test.ts'
import './email-codes/magic-links.test.ts'
import './email-codes/mails.test.ts'
import './email-codes/second-factor.test.ts'
import './email-codes/sign-in.test.ts'
import './email-codes/stored-codes.test.ts'
