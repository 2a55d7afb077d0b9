/** Recovery codes: for users who have lost their authenticator app. */
import { createHash, randomInt } from 'node:crypto'
import { asciiLowerCase } from '#base/ascii'

/** Codes of one user. */
export const RECOVERY_CODES = 10

/** The characters of codes, without letters and digits that look alike. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789'

/** 31²⁴: 118 bits. From 112 bits on, a fast hash is enough at rest (OWASP ASVS 5.0, 6.5.2). */
const LENGTH = 24
const GROUP = 4

/** @returns six groups of four characters: `k3wf-7hqa-x9mz-24tn-p6dr-8ubc`. */
const newRecoveryCode = (): string => {
  const characters = Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)])
  const groups = []
  for (let index = 0; index < LENGTH; index += GROUP)
    groups.push(characters.slice(index, index + GROUP).join(''))
  return groups.join('-')
}

export const newRecoveryCodes = (): string[] => Array.from({ length: RECOVERY_CODES }, newRecoveryCode)

/** A code as people type it: with or without hyphens and spaces, in either letter case. */
const canonical = (code: string): string => asciiLowerCase(code.replaceAll(/[ -]/g, ''))

/** Whether a presented code has the form of a recovery code, not that of an authenticator app. */
export const isRecoveryCode = (code: string): boolean => canonical(code).length === LENGTH

/** What is stored, and exported. A fast hash is enough, because nobody can try 118 bits. */
export const recoveryCodeDigest = (code: string): string =>
  createHash('sha256').update(canonical(code)).digest('base64url')
