/** Writes SVG: elements as text, colours of themes. Deterministic: the same input gives the same bytes. */

export interface Theme {
  readonly name: string
  readonly background: string
  readonly text: string
  readonly muted: string
  readonly grid: string
  /** The colours of the curves: blue and orange, which every kind of colour blindness leaves distinct. Their contrast suffices for text. */
  readonly series: readonly string[]
  /** Whether names of curves have a rim in the colour of the background, where they may lie over curves. */
  readonly hasRims?: true
}

/** The variables of a page's stylesheet, which has them for both colour schemes. */
export const PAGE_THEME: Theme = {
  name: 'page',
  background: 'var(--card)',
  text: 'var(--text)',
  muted: 'var(--muted)',
  grid: 'var(--line)',
  series: ['var(--series-1)', 'var(--series-2)', 'var(--series-3)', 'var(--series-4)', 'var(--series-5)'],
  hasRims: true,
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
