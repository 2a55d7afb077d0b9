/** HTML from tagged templates: every value is escaped, except for HTML that such a template has made. */

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

const escapeText = (text: string): string => text.replace(/[&<>"']/g, character => ESCAPED[character] ?? '')

const textOf = (value: HtmlValue): string => {
  if (value === null || value === undefined || value === false) return ''
  if (value instanceof Html) return value.text
  return typeof value === 'object' ? value.map(textOf).join('') : escapeText(String(value))
}

/** Values belong between tags or into quoted attributes. No template of the service has a value in a tag's name, script or style. */
export const html = (parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html =>
  new Html(parts.reduce((text, part, index) => text + textOf(values[index - 1]) + part))
