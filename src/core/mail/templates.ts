/** Both parts of a mail, text and HTML, from the texts of its kind or from a host's template. */
import { DEFAULT_LANGUAGE, fill, type Languages, type OwnedTexts } from '#base/texts'
import { escapeHtml, FRAME_TEXTS, htmlOf, type MailBrand, type MailParts, textOf } from './frame.ts'
import type { MailKind, MailRecipient, MailSite, MailTemplate, MailTexts } from './kinds.ts'
import type { Content } from './transports.ts'

const STYLE = 'max-width:36em;margin:0 auto;padding:1em;font:16px/1.5 sans-serif'

const page = (subject: string, body: readonly string[]): string =>
  [
    '<!doctype html>',
    `<html><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="${STYLE}">`,
    ...body,
    '</body></html>\n',
  ].join('\n')

const textAsHtml = (text: string): string[] =>
  text
    .trim()
    .split(/\n\s*\n/)
    .map(escapeHtml)
    .map(paragraph => paragraph.replace(/https?:\/\/[^\s<>]+/g, url => `<a href="${url}">${url}</a>`))
    .map(paragraph => `<p>${paragraph.replaceAll('\n', '<br>\n')}</p>`)

const isLine = (value: unknown): boolean =>
  typeof value === 'string' && value.trim() !== '' && !/[\r\n]/.test(value)

const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''

/** @throws {Error} of a host's template, or if its result is not a {@link MailText}. */
export const composeFrom = (
  template: MailTemplate,
  { link }: MailKind,
  site: MailSite & Pick<MailRecipient, 'locale'>,
  values: readonly unknown[],
): Content => {
  const data = { ...site, ...(values[0] as object | undefined), link: link?.(site, ...(values as never[])) }
  const { subject, text, html } = template(data as never)
  if (!isLine(subject) || !isText(text) || (html !== undefined && !isText(html)))
    throw new Error(
      'A template must return { subject, text }, and html or nothing, with a subject of one line',
    )
  return { subject, text, html: html ?? page(subject, textAsHtml(text)) }
}

interface MailContext {
  readonly site: MailSite
  readonly languages: Languages
  readonly brand: MailBrand
}

/** A kind whose subject the language of the recipient lacks is English as a whole. */
const mailLanguage = (owned: OwnedTexts, locale: string | null, languages: Languages): string => {
  const tag = (locale === null ? undefined : languages.fitting(locale)) ?? DEFAULT_LANGUAGE
  return `${owned.owner}.subject` in languages.ownTexts(owned, tag) ? tag : DEFAULT_LANGUAGE
}

const partsOf = (kind: MailKind, texts: MailTexts, site: MailSite, values: readonly unknown[]): MailParts => {
  const [given] = values as never[]
  const { name: product, host, publicUrl } = site
  const places = { product, host, publicUrl, ...kind.places?.(given as never) }
  const filled = (text: string): string => fill(text, places)
  const link = kind.link?.(site, ...(values as never[])) ?? null
  return {
    subject: texts.subject,
    paragraphs: [filled(texts.text), ...(kind.more?.(texts as never, given as never) ?? [])],
    code: kind.code?.(given as never) ?? null,
    button: link === null ? null : { text: texts.button ?? link, link },
    reason: texts.reason === undefined ? null : filled(texts.reason),
  }
}

/**
 * In the recipient's language if the kind has that, else in English. `MailSender` checks the types of `values`.
 * @param name of the kind, the key of its texts.
 */
export const compose = (
  name: string,
  kind: MailKind,
  { site, languages, brand }: MailContext,
  locale: string | null,
  values: readonly unknown[],
): Content => {
  const owned = ownedBy(name, kind)
  const tag = mailLanguage(owned, locale, languages)
  const parts = partsOf(kind, languages.textsOf(owned, tag) as unknown as MailTexts, site, values)
  const frame = {
    product: site.name,
    language: tag === DEFAULT_LANGUAGE ? 'en-GB' : tag,
    texts: languages.textsOf(FRAME_TEXTS, tag),
    brand,
  }
  return { subject: parts.subject, text: textOf(parts, frame), html: htmlOf(parts, frame) }
}

const ownedTexts = new WeakMap<MailKind, OwnedTexts>()

/** The texts of a kind with their key, `mails.<kind>`. The same object each time, by which {@link Languages} finds what it has merged. */
export const ownedBy = (name: string, kind: MailKind): OwnedTexts => {
  const found = ownedTexts.get(kind) ?? { owner: `mails.${name}`, en: kind.en, de: kind.de ?? {} }
  ownedTexts.set(kind, found)
  return found
}
