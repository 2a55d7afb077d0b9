/** The files of `TEXTS`: texts by their keys, which add a language or replace built-in texts. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError } from './settings/readers.ts'
import { decodeUtf8, EncodingError } from './text-encoding.ts'
import { flatten, type OwnedTexts, placesOf, type TextFile } from './texts.ts'

/** Bytes of one file. */
const MAX_SIZE = 1_048_576

/** Texts are one paragraph, and keep the direction of their surroundings. */
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** A mistake in a file, as a sentence that names file and key. */
export class TextFileError extends Error {}

export const fail = (file: string, message: string): never => {
  throw new TextFileError(`${file}: ${message}`)
}

const canonicalTag = (tag: string): string | null => {
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? null
  } catch {
    return null
  }
}

/** @param tag in the name of the file. @throws {TextFileError} if it is no tag of BCP 47 in canonical form */
export const checkLanguage = (file: string, tag: string): string => {
  const canonical = canonicalTag(tag)
  if (canonical === null)
    return fail(file, 'must have a language tag (BCP 47) in its name, such as fr or pt-BR')
  return canonical === tag
    ? tag
    : fail(file, `must have the language as ${canonical} in its name, not ${tag}`)
}

/** @param maxSize in bytes. @param inWords the same for people. @throws {TextFileError} */
export const readText = (file: string, maxSize: number, inWords: string): string => {
  try {
    const found = statSync(file)
    // A pipe would be waited for, and a device may have no end.
    if (!found.isFile()) fail(file, 'must be a file, not a folder, pipe or device')
    if (found.size > maxSize) fail(file, `must have at most ${inWords}`)
    return decodeUtf8(readFileSync(file))
  } catch (error) {
    if (error instanceof TextFileError) throw error
    return fail(file, error instanceof EncodingError ? error.message : 'must be a file that can be read')
  }
}

/**
 * Checks files against what is known after the settings were read.
 * @param setting the name of the setting with the folder. @throws {ConfigError} for a mistake in a file
 */
export const checkFilesOf = (setting: string, check: () => void): void => {
  try {
    check()
  } catch (error) {
    if (error instanceof TextFileError)
      throw new ConfigError([`${setting} has a mistake in ${error.message}`])
    throw error
  }
}

/** The names of the files in a folder. @throws {TextFileError} */
export const filesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder)
  } catch {
    return fail(folder, 'must be a folder that can be read')
  }
}

const parsed = (file: string): unknown => {
  try {
    return JSON.parse(readText(file, MAX_SIZE, '1 MiB'))
  } catch (error) {
    if (error instanceof TextFileError) throw error
    return fail(file, `must be JSON (${(error as Error).message.split('\n', 1)[0]})`)
  }
}

const readTextFile = (file: string): TextFile => {
  const content = parsed(file)
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    return fail(file, 'must be an object of texts by their keys')
  for (const [key, text] of Object.entries(content)) {
    if (typeof text !== 'string') return fail(file, `${key} must be a text`)
    if (text.trim() === '') return fail(file, `${key} must not be empty`)
    if (CONTROL.test(text)) return fail(file, `${key} must not contain control characters or line breaks`)
  }
  return content as TextFile
}

export interface TextFiles {
  readonly folder: string
  /** Texts by language. */
  readonly languages: ReadonlyMap<string, TextFile>
}

/**
 * @returns texts by the language of each `<tag>.json` of a folder.
 * @throws {TextFileError}
 */
export const readTextFiles = (folder: string): TextFiles => {
  const languages = new Map(
    filesIn(folder)
      .filter(name => name.endsWith('.json'))
      .map(name => {
        const file = join(folder, name)
        return [checkLanguage(file, name.slice(0, -'.json'.length)), readTextFile(file)] as const
      }),
  )
  return { folder, languages }
}

/** The English texts by their keys. */
const textsByKey = (all: readonly OwnedTexts[]): Map<string, string> =>
  new Map(all.flatMap(({ en, owner }) => flatten(en, owner)))

/** What is wrong with the places of a text; `null` for nothing. */
const problemOfPlaces = (text: string, english: string): string | null => {
  const [has, needs] = [placesOf(text), placesOf(english)]
  const unknown = has.find(place => !needs.includes(place))
  if (unknown !== undefined) return `has no place {${unknown}}`
  const absent = needs.find(place => !has.includes(place))
  return absent === undefined ? null : `needs the place {${absent}}`
}

/** @throws {TextFileError} for a key that no text has, or for places other than those of the English text. */
export const checkTextFiles = ({ folder, languages }: TextFiles, all: readonly OwnedTexts[]): void => {
  const english = textsByKey(all)
  for (const [tag, texts] of languages)
    for (const [key, text] of Object.entries(texts)) {
      const file = join(folder, `${tag}.json`)
      const known = english.get(key)
      if (known === undefined) return fail(file, `there is no text ${key}`)
      const problem = problemOfPlaces(text, known)
      if (problem !== null) return fail(file, `${key} ${problem}: “${known}”`)
    }
}
