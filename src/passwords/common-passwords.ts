/** What is known of commonly chosen passwords: the list of them and the layouts of keyboards, loaded with the first new password. */
import { createRequire } from 'node:module'

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
