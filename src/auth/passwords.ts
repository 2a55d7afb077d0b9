/** Which passwords are accepted (DESIGN §4), and how a password becomes the bytes that are hashed. */

import { ERRORS } from '../errors.ts'
import { canonicalEmail } from '../users/user.ts'
import { isCommon } from './common-passwords.ts'

export const PASSWORD_MAX_LENGTH = 128

/** The same password typed on another keyboard can arrive composed otherwise ("é" as one code point or two). */
export const canonicalPassword = (password: string): string => password.normalize('NFC')

/** Characters of a local part from which on it counts: a shorter one is in too many words. */
const MIN_LOCAL_PART = 4

/** Whether a password holds the part of the e-mail before the `@`, in any letter case: the first thing that is guessed. */
export const isLikeEmail = (password: string, email: string): boolean => {
  const canonical = canonicalEmail(email)
  const localPart = canonical.slice(0, canonical.lastIndexOf('@'))
  return localPart.length >= MIN_LOCAL_PART && password.toLowerCase().includes(localPart)
}

/**
 * What is wrong with a new password beyond its length.
 * @param email the account's e-mail as it was entered, if it was entered beside the password.
 */
export const passwordFaults = (password: string, email: unknown): string[] => {
  const faults: string[] = []
  const lower = password.toLowerCase()
  if (isCommon(lower.trim())) faults.push('is too commonly used')
  if (typeof email === 'string' && isLikeEmail(password, email)) faults.push(ERRORS.passwordLikeEmail.message)
  return faults
}
