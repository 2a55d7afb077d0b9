/** Both parts of a mail, text and HTML, from one list of blocks. */
import type { Block, MailKind, MailSite } from './kinds.ts'
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

const layOut = (subject: string, blocks: readonly Block[]): Content => ({
  subject,
  text: `${blocks.map(asText).join('\n\n')}\n`,
  html: [
    '<!doctype html>',
    `<html lang="en-GB"><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="${STYLE}">`,
    ...blocks.map(asHtml),
    '</body></html>\n',
  ].join('\n'),
})

/** @param values what the kind's body declares; `MailSender` checks their types. */
export const compose = ({ subject, body }: MailKind, site: MailSite, values: readonly unknown[]): Content => {
  const blocks = body(site, ...(values as never[]))
  return layOut(subject, ['Hello,', ...blocks, `This mail was sent by ${site.host}. Replies are not read.`])
}
