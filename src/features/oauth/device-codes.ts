/** User codes (RFC 8628 §6.1): what a person reads on one device, and types on another. */
import { randomInt } from 'node:crypto'

/** Consonants: no words, and nothing that looks like a digit. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'

const LENGTH = 8

const CODE = new RegExp(`^[${LETTERS}]{${LENGTH}}$`)

export const newUserCode = (): string =>
  Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('')

/** With a dash in the middle. */
export const shownUserCode = (code: string): string =>
  `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`

/** @returns the letters of a code, however it was typed; `null` if the text is not one. */
export const readUserCode = (text: string): string | null => {
  const letters = text.toUpperCase().replaceAll(/[\s\p{Pd}]/gu, '')
  return CODE.test(letters) ? letters : null
}
