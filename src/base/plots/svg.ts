/** Writes SVG: elements as text. Deterministic: the same input gives the same bytes. */

type Attributes = Readonly<Record<string, string | number>>

/** Text as the content of an element or the value of an attribute. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** One decimal: a tenth of a pixel. */
const attributeValue = (value: string | number): string =>
  typeof value === 'number' ? String(Math.round(value * 10) / 10) : escaped(value)

/** @param content markup. */
export const element = (name: string, attributes: Attributes, content = ''): string => {
  const fields = Object.entries(attributes).map(([field, value]) => ` ${field}="${attributeValue(value)}"`)
  return `<${name}${fields.join('')}${content === '' ? '/>' : `>${content}</${name}>`}`
}

export const text = (content: string, attributes: Attributes): string =>
  element('text', attributes, escaped(content))
