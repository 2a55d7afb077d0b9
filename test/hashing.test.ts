/** Passwords and their hashes. Each file runs by itself as well. */
import './hashing/clients.test.ts'
import './hashing/expensive.test.ts'
import './hashing/formats.test.ts'
import './hashing/hashing.test.ts'
import './hashing/threads.test.ts'
