/** Verifies a password with argon2id and the service's parameters. */
import { hashSync, verifySync } from '@node-rs/argon2'
import { HASH_PARAMETERS } from '#core/passwords/formats'

const PASSWORD = 'a rather long pass phrase 7'
const ENCODED = hashSync(PASSWORD, HASH_PARAMETERS)

export default (): boolean => verifySync(ENCODED, PASSWORD)
