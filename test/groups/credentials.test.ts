/** Passwords, keys of users and administrators, and other ways to sign in. */
import '../admin-keys.test.ts'
import '../api-keys.test.ts'
import '../email-codes.test.ts'
import '../encryption.test.ts'
import '../passkeys.test.ts'
import '../passwords.test.ts'
import '../totp.test.ts'
