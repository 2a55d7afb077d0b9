/** What the hashing threads run: argon2id, one hash at a time, blocking nobody but their own thread. */
import { hashSync, verifySync } from '@node-rs/argon2'
import { HASH_PARAMETERS } from './hash-parameters.ts'

export const hash = (password: string): string => hashSync(password, HASH_PARAMETERS)

export const verify = ({ password, encoded }: { password: string; encoded: string }): boolean =>
  verifySync(encoded, password)
