/** Which passwords are accepted (docs/design.md, "Contract"), and how a password becomes the bytes that are hashed. */
import { createRequire } from 'node:module'
import { ERRORS } from '#base/errors'
import { canonicalEmail, EMAIL_MAX_LENGTH } from '../users/user.ts'

/** Characters, as code points. */
export const PASSWORD_MAX_LENGTH = 128

/** NFC: the same password typed on another keyboard may be decomposed ("é" as one code point or two). */
export const canonicalPassword = (password: string): string => password.normalize('NFC')

/** The length check rejects shorter ones. */
const MIN_LENGTH = 8

interface Dictionary {
  readonly passwords: ReadonlySet<string>
  /** Pairs of adjacent keys by keyboard layout. */
  readonly layouts: readonly ReadonlySet<string>[]
}

const require = createRequire(import.meta.url)

/** Each key with its neighbours, without and with shift; `null` where there is none. */
type Layout = Readonly<Record<string, readonly (string | null)[]>>

const adjacentKeys = (layout: Layout): ReadonlySet<string> => {
  const pairs = new Set<string>()
  for (const [key, around] of Object.entries(layout))
    for (const character of around.join('')) pairs.add(`${key}${character}`.toLowerCase())
  return pairs
}

/** Loads the dictionary, which blocks the event loop once. */
const loadDictionary = (): Dictionary => {
  const { dictionary, adjacencyGraphs } =
    require('@zxcvbn-ts/language-common') as typeof import('@zxcvbn-ts/language-common')
  // Loaded as CommonJS and removed from its cache, so that the other dictionaries become garbage.
  for (const file of Object.keys(require.cache)) if (file.includes('@zxcvbn-ts')) delete require.cache[file]
  return {
    passwords: new Set(dictionary['passwords-common'].filter(password => password.length >= MIN_LENGTH)),
    layouts: Object.values(adjacencyGraphs as Readonly<Record<string, Layout>>).map(adjacentKeys),
  }
}

let loaded: Dictionary | undefined

const dictionary = (): Dictionary => {
  loaded ??= loadDictionary()
  return loaded
}

export const isCommon = (password: string): boolean => dictionary().passwords.has(password)

/** Whether each is next to the previous on one keyboard: `qwertzui`, `1q2w3e4r`. @param characters in lower case. */
const isKeyboardPath = (characters: readonly string[]): boolean =>
  dictionary().layouts.some(pairs =>
    characters.every((character, index) => index === 0 || pairs.has(`${characters[index - 1]}${character}`)),
  )

const COMMON = 'is too commonly used: choose another'
const BLANK = 'must have visible characters'
const REPEATED = 'must not repeat a part that is short or easy to guess: add something else'
const PATTERN = 'must not be a sequence or a row of keys, such as abcdefgh or qwertyui: choose another'

/** Characters without a glyph, except for white space. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/gu

/** Each of these characters is its own visible form. */
const PRINTABLE_ASCII = /^[ -~]*$/

/** The form in which passwords that look alike are equal. */
const visible = (text: string): string =>
  PRINTABLE_ASCII.test(text) ? text : text.normalize('NFKC').replaceAll(INVISIBLE, '')

/** The form in which whole passwords are compared: visible, regardless of letter case (NIST SP 800-63B-4 §3.1.1.2). */
const folded = (text: string): string => visible(text).trim().toLowerCase()

/** The shortest part whose repetition is the whole, the last time maybe cut short; `null` if there is none. */
const repeatedPart = (characters: readonly string[]): readonly string[] | null => {
  for (let part = 1; part <= characters.length / 2; part += 1) {
    if (characters.every((character, index) => character === characters[index % part]))
      return characters.slice(0, part)
  }
  return null
}

/** Compares what is typed: in visible form, U+FDFA becomes 18 characters. */
const repeatsShortPart = (password: string, minLength: number): boolean => {
  const part = repeatedPart([...canonicalPassword(password)])
  return part !== null && part.length < minLength
}

/** Maximum step between the code points of a sequence, as in zxcvbn: `13579` is one too. */
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
 * @param password in visible form. @returns the violated rule. Patterns must span the whole password: zxcvbn itself is too slow for long
 * ones, and reports only the matches that it ranks best.
 */
const visibleViolation = (
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
    // The password is as hard to guess as its part.
    const weak =
      part.length < minLength || visibleViolation(part.join(''), minLength, emailForms) !== undefined
    return weak ? REPEATED : undefined
  }
  // Both letter cases: in Unicode, symbols lie between capitals and small letters, so a sequence may cross from either.
  return isSequence([...password]) || isSequence(characters) || isKeyboardPath(characters)
    ? PATTERN
    : undefined
}

const emailForms = (email: unknown): string[] => {
  if (typeof email !== 'string') return []
  const canonical = canonicalEmail(email)
  // The error of its own field reports a longer one.
  if (canonical.length > EMAIL_MAX_LENGTH) return []
  return [canonical, canonical.slice(0, canonical.lastIndexOf('@'))].map(folded)
}

/** Whether a password is the e-mail or its local part, in any letter case. */
export const isOwnEmail = (password: string, email: string): boolean =>
  emailForms(email).includes(folded(password))

/** @param email of the same request, as entered. @returns the violated rule; none for another length, which the schema refuses. */
export const passwordViolations = (password: string, minLength: number, email: unknown): string[] => {
  if (password.length > 2 * PASSWORD_MAX_LENGTH) return []
  const length = [...password].length
  if (length < minLength || length > PASSWORD_MAX_LENGTH) return []
  const [whole, forms] = [visible(password), emailForms(email)]
  const trimmed = whole.trim()
  const violation =
    visibleViolation(whole, minLength, forms) ??
    (trimmed === whole ? undefined : visibleViolation(trimmed, minLength, forms)) ??
    (repeatsShortPart(password, minLength) ? REPEATED : undefined)
  return violation === undefined ? [] : [violation]
}
