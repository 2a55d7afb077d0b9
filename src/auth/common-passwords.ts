/** The list of commonly used passwords, loaded when the first new password is checked. */
import { createRequire } from 'node:module'

/** Shorter ones are refused by their length already. */
const MIN_LENGTH = 8

const require = createRequire(import.meta.url)

/** About 30 ms of the event loop, once, and 2 MB that stay. */
const load = (): ReadonlySet<string> => {
  const { dictionary } = require('@zxcvbn-ts/language-common') as typeof import('@zxcvbn-ts/language-common')
  // As a CommonJS module, so that the other dictionaries and the short passwords are garbage once they are forgotten here.
  for (const file of Object.keys(require.cache)) if (file.includes('@zxcvbn-ts')) delete require.cache[file]
  return new Set(dictionary['passwords-common'].filter(password => password.length >= MIN_LENGTH))
}

let common: ReadonlySet<string> | null = null

/** @param password in lower case, as the list is. */
export const isCommon = (password: string): boolean => {
  common ??= load()
  return common.has(password)
}
