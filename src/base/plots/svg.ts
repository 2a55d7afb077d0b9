/** Writes SVG: elements as text, in the colours of a page. Deterministic: the same input gives the same bytes. */

/** The variables of a page's stylesheet, which has them for both colour schemes. */
export const THEME = {
  background: 'var(--card)',
  text: 'var(--text)',
  muted: 'var(--muted)',
  grid: 'var(--line)',
  /** The colours of curves, which every kind of colour blindness leaves distinct. Their contrast suffices for text. */
  series: ['var(--series-1)', 'var(--series-2)', 'var(--series-3)', 'var(--series-4)', 'var(--series-5)'],
}

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
