/** Ways to sign in beside passwords. */
import '../email-codes.test.ts'
import '../passkeys.test.ts'
import '../totp.test.ts'
