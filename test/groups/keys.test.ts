/** Keys of users and administrators, and passwords. */
import '../admin-keys.test.ts'
import '../api-keys.test.ts'
import '../passwords.test.ts'
import '../encryption.test.ts'
