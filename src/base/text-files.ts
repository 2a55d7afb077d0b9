/** The files of `TEXTS`: texts by their keys, which add a language or replace built-in texts. */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { flatten, type OwnedTexts, placesOf, type TextFile } from './texts.ts'

/** Bytes of one file. */
const MAX_SIZE = 1_048_576

/** Texts are one paragraph, and keep the direction of their surroundings. */
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u

/** A mistake in a file, as a sentence that names file and key. */
export class TextFileError extends Error {}

const fail = (file: string, message: string): never => {
  throw new TextFileError(`${file}: ${message}`)
}

const languageOfName = (file: string, name: string): string => {
  const tag = name.slice(0, -'.json'.length)
  try {
    const [canonical = ''] = Intl.getCanonicalLocales(tag)
    if (canonical === tag) return tag
    return fail(file, `the language must be written ${canonical}, so name the file ${canonical}.json`)
  } catch (error) {
    if (error instanceof TextFileError) throw error
    return fail(file, 'must be named by a language tag (BCP 47), such as fr.json or pt-BR.json')
  }
}

const contentOf = (file: string): string => {
  const descriptor = openSync(file, 'r')
  try {
    const { size } = fstatSync(descriptor)
    if (size > MAX_SIZE) fail(file, 'must have at most 1 MiB')
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

const parsed = (file: string): unknown => {
  try {
    return JSON.parse(contentOf(file))
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
  const names = ((): string[] => {
    try {
      return readdirSync(folder)
    } catch {
      return fail(folder, 'must be a folder that can be read')
    }
  })()
  const languages = new Map(
    names
      .filter(name => name.endsWith('.json'))
      .map(name => {
        const file = join(folder, name)
        return [languageOfName(file, name), readTextFile(file)] as const
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
