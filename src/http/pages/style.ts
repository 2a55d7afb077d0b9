/** The stylesheet of the hosted pages: the rules of the font, the colours of the brand, and `style.css`. Light and dark, from 320 px of width. */
import { readFileSync } from 'node:fs'
import type { BrandColors, BrandPalette } from '#base/brand-colors'

/** Inter in all its scripts: a browser loads the files whose characters a page has. */
const FONT = new URL(import.meta.resolve('@fontsource-variable/inter'))

const FONT_FILE = /\.\/files\/([\w-]+\.woff2)/g

/** The file with the letters of Western languages, which every page needs. */
export const MAIN_FONT_FILE = 'pages/fonts/inter-latin-wght-normal.woff2'

const fontRules = (): string => readFileSync(FONT, 'utf8')

/** The files of the font, and their URLs relative to the service. */
export const fontFiles = (): readonly { readonly url: string; readonly file: URL }[] =>
  Array.from(fontRules().matchAll(FONT_FILE), ([path, name]) => ({
    url: `pages/fonts/${name}`,
    file: new URL(path, FONT),
  }))

const TOKENS = {
  '--brand-fill': 'fill',
  '--brand-fill-hover': 'fillHover',
  '--brand-line': 'fillLine',
  '--on-brand': 'onFill',
  '--accent': 'accent',
  '--tint': 'tint',
  '--tint-line': 'tintLine',
} as const satisfies Readonly<Record<string, keyof BrandPalette>>

const tokens = (colorOf: (name: keyof BrandPalette) => string): string =>
  `:root{${Object.entries(TOKENS)
    .map(([token, name]) => `${token}:${colorOf(name)}`)
    .join(';')}}`

/** Browsers without `light-dark()` get the light colours. */
const brandRules = ({ light, dark }: BrandColors): string =>
  `${tokens(name => light[name])}
@supports (color: light-dark(#000, #fff)){${tokens(name => `light-dark(${light[name]},${dark[name]})`)}}`

export const pageStyle = (colors: BrandColors): string =>
  [
    fontRules().replaceAll(FONT_FILE, 'fonts/$1'),
    brandRules(colors),
    readFileSync(new URL('style.css', import.meta.url), 'utf8'),
  ].join('\n')
