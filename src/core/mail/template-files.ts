/** Mails of an operator's own: pairs of files `<kind>.<language>.html` and `.txt` in the folder of `MAIL_TEMPLATES`. */
import { join } from 'node:path'
import { checkLanguage, fail, filesIn, readText } from '#base/text-files'
import { flatten, placesOf } from '#base/texts'
import { escapeHtml, type MailBrand } from './frame.ts'
import type { MailKind, MailKinds } from './kinds.ts'
import type { Content } from './transports.ts'

/** Bytes of one file. */
const MAX_SIZE = 262_144

export interface TemplateFiles {
  readonly folder: string
  /** By the kind, then by the language. */
  readonly templates: ReadonlyMap<string, ReadonlyMap<string, Content>>
}

const NAME = /^(?<kind>[a-z]\w*)\.(?<language>[^.]+)\.(?:html|txt)$/i

/** Characters that mails do not show, apart from white space. */
const CONTROL = /[^\P{Cc}\t\r\n]/u

const readPart = (file: string): string => {
  const text = readText(file, MAX_SIZE, '256 KiB').replaceAll('\r\n', '\n')
  if (text.trim() === '') fail(file, 'must not be empty')
  if (CONTROL.test(text)) fail(file, 'must not contain control characters')
  return text
}

const readTemplate = (html: string, txt: string): Content => {
  const [, subject = '', text = ''] = /^Subject: *(\S.*)\n\s*(\S[\s\S]*)$/.exec(readPart(txt)) ?? []
  if (text === '')
    fail(txt, 'must begin with a line such as “Subject: Confirm your address”, and have a text')
  return { subject: subject.trim(), text, html: readPart(html) }
}

/**
 * @returns the templates of a folder. Other files than `.html` and `.txt` are ignored.
 * @throws {TextFileError}
 */
export const readTemplateFiles = (folder: string): TemplateFiles => {
  const templates = new Map<string, Map<string, Content>>()
  const names = filesIn(folder).filter(name => /\.(?:html|txt)$/.test(name))
  for (const name of names) {
    const file = join(folder, name)
    const { kind, language } =
      NAME.exec(name)?.groups ??
      fail(file, 'must be named by its kind and language, such as verification.en.html')
    checkLanguage(file, language ?? '')
    const [html, txt] = [`${kind}.${language}.html`, `${kind}.${language}.txt`]
    const absent = [html, txt].find(each => !names.includes(each))
    if (absent !== undefined) fail(file, `there must be ${absent} beside it`)
    const ofKind = templates.get(kind ?? '') ?? new Map<string, Content>()
    templates.set(kind ?? '', ofKind)
    if (name === html) ofKind.set(language ?? '', readTemplate(file, join(folder, txt)))
  }
  return { folder, templates }
}

const PLACE = /\{\{([^{}]*)\}\}/g

const namesIn = (text: string): string[] => [...text.matchAll(PLACE)].map(([, name = '']) => name.trim())

/** The names that also a subject can have: no user chooses their values. */
const OF_SITE = ['product', 'host', 'publicUrl']

const placesIn = ({ en, link, code, more }: MailKind, hasLogo: boolean): string[] => [
  ...new Set([
    ...OF_SITE,
    ...flatten(en, '').flatMap(([, text]) => placesOf(text)),
    ...(link === undefined ? [] : ['link']),
    ...(code === undefined ? [] : ['code']),
    ...(more === undefined ? [] : ['more']),
    ...(hasLogo ? ['logo'] : []),
  ]),
]

/** Places without which nobody can use the mail. */
const neededIn = ({ code, example = {} }: MailKind): string[] => [
  ...('token' in example ? ['link'] : []),
  ...(code === undefined ? [] : ['code']),
]

const inBraces = (names: readonly string[]): string => names.map(name => `{{${name}}}`).join(', ')

const checkPlaces = (
  file: string,
  text: string,
  known: readonly string[],
  needed: readonly string[],
): void => {
  const found = namesIn(text)
  const unknown = found.find(name => !known.includes(name))
  if (unknown !== undefined) fail(file, `there is no {{${unknown}}} here, there are ${inBraces(known)}`)
  if (text.includes('{{{') || text.replaceAll(PLACE, '').includes('{{'))
    fail(file, 'has {{ without a name and }}')
  const absent = needed.find(name => !found.includes(name))
  if (absent !== undefined) fail(file, `needs {{${absent}}}`)
}

/** @throws {TextFileError} for a kind that there is not, or for places that it does not have or needs. */
export const checkTemplateFiles = (
  { folder, templates }: TemplateFiles,
  kinds: MailKinds,
  { logo }: Pick<MailBrand, 'logo'>,
): void => {
  const hasLogo = typeof logo === 'object'
  for (const [name, ofKind] of templates)
    for (const [language, { subject, text, html }] of ofKind) {
      const [htmlFile, textFile] = ['html', 'txt'].map(part =>
        join(folder, `${name}.${language}.${part}`),
      ) as [string, string]
      const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
      if (kind === undefined)
        return fail(htmlFile, `there is no mail ${name}, the mails are ${Object.keys(kinds).join(', ')}`)
      checkPlaces(`${textFile}, the subject`, subject, OF_SITE, [])
      checkPlaces(textFile, text, placesIn(kind, false), neededIn(kind))
      checkPlaces(htmlFile, html, placesIn(kind, hasLogo), neededIn(kind))
    }
}

export const fillTemplate = (
  { subject, text, html }: Content,
  values: Readonly<Record<string, string>>,
): Content => {
  const filled = (template: string, encode: (value: string) => string): string =>
    template.replaceAll(PLACE, (_place, name: string) => encode(values[name.trim()] ?? ''))
  return {
    subject: filled(subject, value => value),
    text: filled(text, value => value),
    html: filled(html, value => escapeHtml(value).replaceAll('\n', '<br>\n')),
  }
}
