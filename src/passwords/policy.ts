/** What is known of commonly chosen passwords: the list of them and the layouts of keyboards, loaded with the first new password. */
import { createRequire } from 'node:module'
import { ERRORS } from '../errors.ts'
import { canonicalEmail, EMAIL_MAX_LENGTH } from '../users/user.ts'

/** Shorter ones are refused by their length already. */
const MIN_LENGTH = 8

interface Known {
  readonly passwords: ReadonlySet<string>
  /** Of each layout the keys beside each other, as two characters. */
  readonly layouts: readonly ReadonlySet<string>[]
}

const require = createRequire(import.meta.url)

/** Keys by the characters on them, each with those around it: without and with shift, `null` where there is none. */
type Layout = Readonly<Record<string, readonly (string | null)[]>>

const neighbours = (layout: Layout): ReadonlySet<string> => {
  const pairs = new Set<string>()
  for (const [key, around] of Object.entries(layout))
    for (const character of around.join('')) pairs.add(`${key}${character}`.toLowerCase())
  return pairs
}

/** About 30 ms of the event loop, once, and 2 MB that stay. */
const load = (): Known => {
  const { dictionary, adjacencyGraphs } =
    require('@zxcvbn-ts/language-common') as typeof import('@zxcvbn-ts/language-common')
  // As a CommonJS module, so that the other dictionaries and the short passwords are garbage once they are forgotten here.
  for (const file of Object.keys(require.cache)) if (file.includes('@zxcvbn-ts')) delete require.cache[file]
  return {
    passwords: new Set(dictionary['passwords-common'].filter(password => password.length >= MIN_LENGTH)),
    layouts: Object.values(adjacencyGraphs as Readonly<Record<string, Layout>>).map(neighbours),
  }
}

let loaded: Known | undefined

const cachedUser = (): Known => {
  loaded ??= load()
  return loaded
}

/** @param password in lower case, as the list is. */
export const isCommon = (password: string): boolean => cachedUser().passwords.has(password)

/** @param characters in lower case. @returns whether each is beside the one before on one keyboard, as in `qwertzui` or `1q2w3e4r`. */
export const isKeyboardPath = (characters: readonly string[]): boolean =>
  cachedUser().layouts.some(pairs =>
    characters.every((character, index) => index === 0 || pairs.has(`${characters[index - 1]}${character}`)),
  )

/** Which passwords are accepted (DESIGN §4), and how a password becomes the bytes that are hashed. */

/** Characters, as code points. */
export const PASSWORD_MAX_LENGTH = 128

/** The same password typed on another keyboard can arrive composed otherwise ("é" as one code point or two). */
export const canonicalPassword = (password: string): string => password.normalize('NFC')

const COMMON = 'is too commonly used: choose another'
const BLANK = 'must have visible characters'
const REPEATED = 'must not repeat a part that is short or easy to guess: add something else'
const PATTERN = 'must not be a sequence or a row of keys, as abcdefgh and qwertyui are: choose another'

/** What one does not see, and no blank between words either. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** Passwords that look alike are equal in this form. */
const visible = (text: string): string => text.normalize('NFKC').replaceAll(INVISIBLE, '')

/** In this one in any letter case too: so whole passwords are compared (NIST SP 800-63B-4 §3.1.1.2). */
const folded = (text: string): string => visible(text).trim().toLowerCase()

/** The shortest part that makes up all of it when it is repeated, the last time perhaps not whole; `null` when there is none. */
const repeatedPart = (characters: readonly string[]): readonly string[] | null => {
  for (let part = 1; part <= characters.length / 2; part += 1) {
    if (characters.every((character, index) => character === characters[index % part]))
      return characters.slice(0, part)
  }
  return null
}

/** Steps between code points in a sequence: those of zxcvbn, which finds `13579` as well. */
const MAX_STEP = 5

const isSequence = (characters: readonly string[]): boolean => {
  const points = characters.map(character => character.codePointAt(0) ?? 0)
  const [first = 0, second = 0] = points
  const step = second - first
  return (
    step !== 0 && Math.abs(step) <= MAX_STEP && points.every((point, index) => point === first + index * step)
  )
}

/**
 * What is wrong with a password in visible form. Of patterns, what zxcvbn's matchers find in all of it: its own package costs
 * up to 20 ms for 128 characters, and tells only of the matches that it ranks best.
 */
const visibleFault = (
  password: string,
  minLength: number,
  emailForms: readonly string[],
): string | undefined => {
  if (password.trim() === '') return BLANK
  const lower = password.toLowerCase()
  if (emailForms.includes(lower)) return ERRORS.passwordIsEmail.message
  if (isCommon(lower)) return COMMON
  const characters = [...lower]
  const part = repeatedPart(characters)
  if (part !== null) {
    // As hard to guess as the part.
    const weak = part.length < minLength || visibleFault(part.join(''), minLength, emailForms) !== undefined
    return weak ? REPEATED : undefined
  }
  // Symbols stand between capitals and small letters, so a sequence may need either.
  return isSequence([...password]) || isSequence(characters) || isKeyboardPath(characters)
    ? PATTERN
    : undefined
}

const emailForms = (email: unknown): string[] => {
  if (typeof email !== 'string') return []
  const canonical = canonicalEmail(email)
  // Its own field is told of a longer one.
  if (canonical.length > EMAIL_MAX_LENGTH) return []
  return [canonical, canonical.slice(0, canonical.lastIndexOf('@'))].map(folded)
}

/** Whether a password is the e-mail or the part of it before the `@`, in any letter case: the first thing that is guessed. */
export const isOwnEmail = (password: string, email: string): boolean =>
  emailForms(email).includes(folded(password))

/**
 * What is wrong with a new password beyond its length. One of an unaccepted length is not looked at: the schema tells of that.
 * @param minLength characters that a password has at least.
 * @param email the account's e-mail as it was entered, if it was entered beside the password.
 */
export const passwordViolations = (password: string, minLength: number, email: unknown): string[] => {
  if (password.length > 2 * PASSWORD_MAX_LENGTH) return []
  const length = [...password].length
  if (length < minLength || length > PASSWORD_MAX_LENGTH) return []
  const [whole, forms] = [visible(password), emailForms(email)]
  const fault = visibleFault(whole, minLength, forms) ?? visibleFault(whole.trim(), minLength, forms)
  return fault === undefined ? [] : [fault]
}
