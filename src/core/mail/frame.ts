/** What surrounds the texts of every mail, as HTML for mail programs: tables, styles at the elements, nothing from the network. */
import { WORDMARK_RATIO } from '#base/brand-colors'
import { defineTexts, fill } from '#base/texts'

export const FRAME_TEXTS = defineTexts('mails.frame', {
  en: {
    openAddress: 'The button does not work? Open this address:',
    sentBy: '{product} sends this mail. Replies are not read.',
    help: 'Help',
    privacy: 'Privacy',
  },
  de: {
    openAddress: 'Die Schaltfläche geht nicht? Öffnen Sie diese Adresse:',
    sentBy: 'Diese E-Mail sendet {product}. Antworten werden nicht gelesen.',
    help: 'Hilfe',
    privacy: 'Datenschutz',
  },
})

/** An image that a mail brings with it. */
export interface MailLogo {
  readonly content: Buffer
  /** Width by height. */
  readonly ratio: number
}

export interface MailBrand {
  /**
   * Mail programs show PNG alone. `letter`: the brand has no logo, so that the first letter of the name stands for it, as on pages; `name`:
   * it has one that mails cannot show.
   */
  readonly logo: MailLogo | 'letter' | 'name'
  /** The button and the text on it, `#rrggbb`. */
  readonly fill: string
  readonly onFill: string
  readonly supportUrl: string | null
  readonly privacyUrl: string | null
}

export const DEFAULT_BRAND: MailBrand = {
  logo: 'letter',
  fill: '#2f5bea',
  onFill: '#ffffff',
  supportUrl: null,
  privacyUrl: null,
}

/** The content of a mail, with its places filled. */
export interface MailParts {
  readonly subject: string
  readonly paragraphs: readonly string[]
  readonly code: string | null
  readonly button: { readonly text: string; readonly link: string } | null
  readonly reason: string | null
}

interface Frame {
  readonly product: string
  /** A tag of BCP 47. */
  readonly language: string
  readonly texts: typeof FRAME_TEXTS.en
  readonly brand: MailBrand
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, character => ENTITIES[character] ?? '')

const FONT = "-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
const INK = '#14171d'
const DIM = '#596272'

/** Only what mail programs may ignore. */
const DARK = `@media (prefers-color-scheme: dark) {
  .page { background: #0b0d11 !important; }
  .box { background: #13161b !important; border-color: #262b34 !important; }
  .code { background: #1b1f27 !important; }
  .ink { color: #e8ebf0 !important; }
  .dim, .dim a { color: #9ca6b5 !important; }
}`

/** Characters of a code that is large enough to be typed from. */
const MAX_LARGE = 16

/** Values such as e-mails have no spaces. Mail programs know it, unlike `overflow-wrap`. */
const BREAK = 'word-break:break-word'

const TABLE = 'role="presentation" cellpadding="0" cellspacing="0" border="0"'

const paragraphOf = (text: string, margin: string): string =>
  `<p class="ink" style="margin:${margin};font:400 16px/24px ${FONT};color:${INK};${BREAK}">${escapeHtml(text)}</p>`

const dimmed = (html: string, margin: string): string =>
  `<p class="dim" style="margin:${margin};font:400 14px/21px ${FONT};color:${DIM};${BREAK}">${html}</p>`

const linkOf = (url: string, text: string, more = ''): string =>
  `<a href="${escapeHtml(url)}" style="color:${DIM}${more}">${escapeHtml(text)}</a>`

const buttonOf = ({ text, link }: NonNullable<MailParts['button']>, { texts, brand }: Frame): string[] => [
  `<table ${TABLE} style="margin:24px 0 0"><tr><td align="center" bgcolor="${brand.fill}" style="border-radius:8px">`,
  `<a href="${escapeHtml(link)}" style="display:inline-block;padding:12px 22px;font:600 16px/20px ${FONT};color:${brand.onFill};text-decoration:none;border-radius:8px">${escapeHtml(text)}</a>`,
  '</td></tr></table>',
  dimmed(`${escapeHtml(texts.openAddress)}<br>${linkOf(link, link, ';word-break:break-all')}`, '24px 0 0'),
]

/** Pixels. */
const LOGO_HEIGHT = 28
const LOGO_MAX_WIDTH = 240

/** The `Content-ID` of the logo (RFC 2392). */
const LOGO_ID = 'logo@gatehouse'

/** What the HTML of a mail names the logo by, also of an operator's template. */
export const LOGO_URL = `cid:${LOGO_ID}`

/** The attachment that {@link LOGO_URL} refers to. */
export const logoAttachment = (content: Buffer) => ({
  filename: 'logo.png',
  content,
  contentType: 'image/png',
  contentDisposition: 'inline' as const,
  cid: LOGO_ID,
})

const imageOf = ({ ratio }: MailLogo, alt: string): string => {
  const width = Math.min(LOGO_HEIGHT * ratio, LOGO_MAX_WIDTH)
  const [w, h] = [Math.round(width), Math.round(width / ratio)]
  return `<img src="${LOGO_URL}" width="${w}" height="${h}" alt="${escapeHtml(alt)}" style="display:block;border:0">`
}

const headOf = ({ product, brand: { logo, fill, onFill } }: Frame): string[] => {
  const name = `<td class="ink" style="font:600 16px/28px ${FONT};color:${INK};${BREAK}">${escapeHtml(product)}</td>`
  const inTable = (...cells: readonly string[]): string[] => [
    `<table ${TABLE}><tr>`,
    ...cells,
    '</tr></table>',
  ]
  const gap = '<td width="8"></td>'
  if (logo === 'name') return inTable(name)
  if (logo === 'letter') {
    const [letter = ''] = product
    const box = `<td width="28" height="28" align="center" bgcolor="${fill}" aria-hidden="true" style="border-radius:8px;font:600 17px/28px ${FONT};color:${onFill}">${escapeHtml(letter)}</td>`
    return inTable(box, gap, name)
  }
  if (logo.ratio >= WORDMARK_RATIO) return inTable(`<td>${imageOf(logo, product)}</td>`)
  return inTable(`<td>${imageOf(logo, '')}</td>`, gap, name)
}

const footOf = ({ product, texts, brand }: Frame): [text: string, links: (readonly [string, string])[]] => [
  fill(texts.sentBy, { product }),
  [[texts.help, brand.supportUrl] as const, [texts.privacy, brand.privacyUrl] as const].flatMap(
    ([text, url]) => (url === null ? [] : [[text, url] as const]),
  ),
]

export const htmlOf = (parts: MailParts, frame: Frame): string => {
  const { subject, paragraphs, code, button, reason } = parts
  const { language } = frame
  const [foot, links] = footOf(frame)
  return [
    '<!doctype html>',
    `<html lang="${escapeHtml(language)}">`,
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="supported-color-schemes" content="light dark">',
    `<title>${escapeHtml(subject)}</title>`,
    `<style>\n${DARK}\n</style>`,
    '</head>',
    '<body class="page" style="margin:0;padding:0;background:#f7f8fa">',
    '<div role="main">',
    // What mail programs show of the mail in their lists.
    `<div style="display:none;max-height:0;overflow:hidden">${escapeHtml(reason ?? paragraphs[0] ?? subject)}</div>`,
    `<table class="page" ${TABLE} width="100%" style="background:#f7f8fa">`,
    '<tr><td align="center" style="padding:32px 16px">',
    `<table ${TABLE} width="100%" style="max-width:520px">`,
    '<tr><td style="padding:0 4px 16px">',
    ...headOf(frame),
    '</td></tr>',
    '<tr><td class="box" style="padding:32px;background:#ffffff;border:1px solid #e4e7ec;border-radius:12px">',
    `<h1 class="ink" style="margin:0;font:600 20px/28px ${FONT};color:${INK};${BREAK}">${escapeHtml(subject)}</h1>`,
    ...paragraphs.map(text => paragraphOf(text, '12px 0 0')),
    ...(code === null
      ? []
      : [
          `<p class="ink code" style="margin:24px 0 0;padding:12px 16px;background:#f0f2f5;border-radius:8px;font:600 ${code.length > MAX_LARGE ? '15px/24px' : '24px/32px'} ui-monospace,Menlo,Consolas,monospace;color:${INK};word-break:break-all">${escapeHtml(code)}</p>`,
        ]),
    ...(button === null ? [] : buttonOf(button, frame)),
    ...(reason === null ? [] : [dimmed(escapeHtml(reason), '16px 0 0')]),
    '</td></tr>',
    `<tr><td class="dim" style="padding:16px 4px 0;font:400 13px/20px ${FONT};color:${DIM};${BREAK}">${escapeHtml(foot)} ${links.map(([text, url]) => linkOf(url, text)).join(' · ')}</td></tr>`,
    '</table>',
    '</td></tr>',
    '</table>',
    '</div>',
    '</body>',
    '</html>\n',
  ].join('\n')
}

export const textOf = ({ paragraphs, code, button, reason }: MailParts, frame: Frame): string => {
  const [foot, links] = footOf(frame)
  const all = [
    ...paragraphs,
    code === null ? null : `    ${code}`,
    button === null ? null : `${button.text}:\n${button.link}`,
    reason,
    [foot, ...links.map(([text, url]) => `${text}: ${url}`)].join('\n'),
  ]
  return `${all.filter(part => part !== null).join('\n\n')}\n`
}
