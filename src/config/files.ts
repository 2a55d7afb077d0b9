/** Files that settings name. */
import { readFileSync } from 'node:fs'
import { SettingError } from './readers.ts'

/**
 * Text that may be quoted because it is a path, and not a secret or a URL in the wrong variable: it begins like a path, or
 * has a folder or an extension in lower case, where a random key has other characters.
 */
const PATH = /^(?:(?:~|\.{1,2}|[A-Za-z]:)?[/\\].*|[a-z0-9._/-]*(?:\/[a-z0-9._-]+|\.[a-z]{1,5}))$/

/** The end of a message about a file: its path, or nothing if it may be a secret. */
export const nameOf = (file: string): string => (PATH.test(file) ? `: ${file}` : '')

/** @returns the text without white space at both ends. @throws {SettingError} */
export const readFile = (file: string): string => {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new SettingError(`names a file that cannot be read${nameOf(file)} (${code})`)
  }
}
