/** Both parts of a mail, text and HTML, from one list of blocks. */
import { languageOf } from '../users/locale.ts'
import type { Block, MailKind, MailRecipient, MailSite, MailTemplate } from './kinds.ts'
import type { Content } from './transports.ts'

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')

const asText = (block: Block): string => {
  if (typeof block === 'string') return block
  return 'link' in block ? `${block.label}:\n${block.link}` : `    ${block.code}`
}

const asHtml = (block: Block): string => {
  if (typeof block === 'string') return `<p>${escapeHtml(block)}</p>`
  if ('code' in block)
    return `<pre style="white-space:pre-wrap;word-break:break-all">${escapeHtml(block.code)}</pre>`
  return `<p><a href="${escapeHtml(block.link)}">${escapeHtml(block.label)}</a></p>`
}

const STYLE = 'max-width:36em;margin:0 auto;padding:1em;font:16px/1.5 sans-serif'

const page = (lang: string, subject: string, body: readonly string[]): string =>
  [
    '<!doctype html>',
    `<html${lang}><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="${STYLE}">`,
    ...body,
    '</body></html>\n',
  ].join('\n')

const FRAMES = {
  en: {
    lang: 'en-GB',
    greeting: 'Hello,',
    footer: (name: string) => `This mail was sent by ${name}. Replies are not read.`,
  },
  de: {
    lang: 'de',
    greeting: 'Guten Tag,',
    footer: (name: string) => `Diese E-Mail wurde von ${name} gesendet. Antworten werden nicht gelesen.`,
  },
}

const layOut = (lang: string, subject: string, blocks: readonly Block[]): Content => ({
  subject,
  text: `${blocks.map(asText).join('\n\n')}\n`,
  html: page(` lang="${lang}"`, subject, blocks.map(asHtml)),
})

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
  return { subject, text, html: html ?? page('', subject, textAsHtml(text)) }
}

/** In the recipient's language if the kind has that, else in English. `MailSender` checks the types of `values`. */
export const compose = (
  kind: MailKind,
  site: MailSite,
  locale: string | null,
  values: readonly unknown[],
): Content => {
  const german = languageOf(locale, ['de']) && kind.de
  const { subject, body } = german ?? kind
  const { lang, greeting, footer } = FRAMES[german ? 'de' : 'en']
  return layOut(lang, subject, [greeting, ...body(site, ...(values as never[])), footer(site.name)])
}
