/** Password hashing. Each file can also be run alone. */
import './passwords/breached-passwords.test.ts'
import './passwords/expensive-hashes.test.ts'
import './passwords/hasher.test.ts'
import './passwords/hashing-requests.test.ts'
import './passwords/hashing-threads.test.ts'
import './passwords/padding.test.ts'
