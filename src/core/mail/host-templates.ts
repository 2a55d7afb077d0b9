/** Templates of mails that are functions of a host application. */
import { escapeHtml } from './frame.ts'
import type { MailKind, MailRecipient, MailSite, MailTemplate } from './kinds.ts'
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
