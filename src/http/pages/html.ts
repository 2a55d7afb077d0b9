/** HTML from tagged templates: every value is escaped, except for HTML that such a template has made. */
import { fillParts } from '#base/texts'

export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

/** `null`, `undefined` and `false` are left out. */
export type HtmlValue = string | number | Html | null | undefined | false | readonly HtmlValue[]

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** HTML has no escape for control characters (HTML §13.2.3.5): they become U+FFFD, except for tabs and line feeds. */
const UNSAFE = /[&<>"']|(?![\t\n])[\p{Cc}\p{Noncharacter_Code_Point}]/gu

const escapeText = (text: string): string => text.replace(UNSAFE, character => ESCAPED[character] ?? '\ufffd')

const textOf = (value: HtmlValue): string => {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  return typeof value === 'object' ? value.map(textOf).join('') : escapeText(String(value))
}

/** Values belong between tags or into quoted attributes. No template of the service has a value in a tag's name, script or style. */
export const html = (parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html =>
  new Html(parts.reduce((text, part, index) => text + textOf(values[index - 1]) + part))

/** A text with its places filled by HTML: `fillHtml('You accept the {link}.', { link })`. */
export const fillHtml = (text: string, values: Readonly<Record<string, Html>>): Html =>
  html`${fillParts(text, values)}`
