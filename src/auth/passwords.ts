/** Which passwords are accepted (DESIGN §4), and how a password becomes the bytes that are hashed. */
import { canonicalEmail } from '../users/user.ts'
import { isCommon } from './common-passwords.ts'

export const PASSWORD_MAX_LENGTH = 128

/** The same password typed on another keyboard can arrive composed otherwise ("é" as one code point or two). */
export const canonicalPassword = (password: string): string => password.normalize('NFC')

/**
 * What is wrong with a new password beyond its length.
 * @param email the account's e-mail as it was entered, if it was entered beside the password.
 */
export const passwordFaults = (password: string, email: unknown): string[] => {
  const faults: string[] = []
  const lower = password.toLowerCase()
  if (isCommon(lower.trim())) faults.push('is too commonly used')
  if (typeof email === 'string' && lower.trim() === canonicalEmail(email))
    faults.push('must differ from the e-mail')
  return faults
}
