/** `texts`: what a translation needs. */
import type { Command } from 'commander'
import { checkTextFiles, TextFileError } from '#base/text-files'
import { DEFAULT_LANGUAGE, Languages, type OwnedTexts, type TextFile } from '#base/texts'
import { CommandError } from '#feature/commands/failure'
import { count, print, printStatus } from '#feature/commands/output'
import { allFeatures } from '#features/built-in'
import { readAll } from './store.ts'

interface ServiceTexts {
  readonly languages: Languages
  readonly all: readonly OwnedTexts[]
}

/** @throws {CommandError} for a mistake in a file, which `check` finds */
export const checked = (setting: string, check: () => void): void => {
  try {
    check()
  } catch (error) {
    throw error instanceof TextFileError
      ? new CommandError(`${setting} has a mistake in ${error.message}`)
      : error
  }
}

/** All texts, with those of `TEXTS`. @throws {ConfigError}; {CommandError} for a mistake in a file of `TEXTS` */
export const serviceTexts = async (): Promise<ServiceTexts> => {
  const { values, featureSettings } = readAll({})
  // Loaded here because it loads every page, which other commands do not need.
  const { allTexts } = await import('#feature/texts')
  const all = await allTexts(allFeatures(), featureSettings)
  const files = values.TEXTS
  if (files !== null) checked('TEXTS', () => checkTextFiles(files, all))
  return { languages: new Languages(files?.languages), all }
}

export const unknownLanguage = ({ tags }: Languages): CommandError =>
  new CommandError(
    `There are no texts in this language: TEXTS names a folder with its file, such as fr.json. The languages are ${tags.join(', ')}`,
  )

const inLanguage = ({ all, languages }: ServiceTexts, language: string): TextFile =>
  Object.assign({}, ...all.map(texts => languages.ownTexts(texts, language)))

/** The form of a file of `TEXTS`. */
const printFile = (texts: TextFile): void => print(false, null, [JSON.stringify(texts, null, 2)])

const exportTexts = async (language: string): Promise<void> => {
  const service = await serviceTexts()
  if (!service.languages.tags.includes(language)) throw unknownLanguage(service.languages)
  printFile({ ...inLanguage(service, DEFAULT_LANGUAGE), ...inLanguage(service, language) })
}

const listMissing = async (language: string): Promise<void> => {
  const service = await serviceTexts()
  if (!service.languages.tags.includes(language)) throw unknownLanguage(service.languages)
  const own = inLanguage(service, language)
  const english = Object.entries(inLanguage(service, DEFAULT_LANGUAGE))
  const missing = english.filter(([key]) => !Object.hasOwn(own, key))
  printFile(Object.fromEntries(missing))
  printStatus(`${language} lacks ${count(missing.length, 'text')} of ${english.length}, which are in English`)
}

export const textsCommand = (program: Command): void => {
  const texts = program
    .command('texts')
    .description('Texts of pages and mails, for translations and your own wording (TEXTS)')
    .option('--missing <language>', 'write the English texts that a language lacks, such as fr')
    .action(async ({ missing }: { missing?: string }) => {
      if (missing === undefined) texts.help({ error: true })
      else await listMissing(missing)
    })
  texts
    .command('export [language]')
    .description('Write every text by its key, as a file of TEXTS; in English by default')
    .action((language = DEFAULT_LANGUAGE) => exportTexts(language))
}
