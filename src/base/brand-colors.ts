/**
 * What pages and mails make of the one colour of a brand: the fill of buttons, text on it, links and tints, as sRGB for both modes. Lightness
 * and chroma are changed in OKLCH, so that the hue stays: https://bottosson.github.io/posts/oklab/
 */

/** Colours of one mode, each `#rrggbb`. */
export interface BrandPalette {
  /** Of primary buttons. */
  readonly fill: string
  readonly fillHover: string
  /** The border of the fill. */
  readonly fillLine: string
  /** Text on the fill: at least 4.5:1. */
  readonly onFill: string
  /** Links, the focus and checked boxes: at least 4.5:1 on every surface. */
  readonly accent: string
  /** A surface, on which text keeps 4.5:1. */
  readonly tint: string
  readonly tintLine: string
}

export interface BrandColors {
  readonly light: BrandPalette
  readonly dark: BrandPalette
}

/** A logo at least this many times as wide as high is taken for a wordmark, which has the name in it. */
export const WORDMARK_RATIO = 2

type Triple = readonly [number, number, number]

/** In OKLab: lightness, and two axes of colour. */
type Lab = Triple

const toLinear = (channel: number): number =>
  channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4

const fromLinear = (channel: number): number =>
  channel <= 0.0031308 ? channel * 12.92 : 1.055 * channel ** (1 / 2.4) - 0.055

const linearOf = (hex: string): Triple => {
  const channel = (at: number): number => toLinear(Number.parseInt(hex.slice(at, at + 2), 16) / 255)
  return [channel(1), channel(3), channel(5)]
}

const labOf = (hex: string): Lab => {
  const [r, g, b] = linearOf(hex)
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}

const linearOfLab = ([lightness, a, b]: Lab): Triple => {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ]
}

const isInGamut = (lab: Lab): boolean =>
  linearOfLab(lab).every(channel => channel >= -0.0001 && channel <= 1.0001)

const STEPS = 12

/** @returns the value nearest to `low` that passes, to within a 4,096th of the range. `high` passes. */
const firstThat = (low: number, high: number, passes: (value: number) => boolean): number => {
  if (passes(low)) return low
  let [failing, passing] = [low, high]
  for (let step = 0; step < STEPS; step += 1) {
    const middle = (failing + passing) / 2
    if (passes(middle)) passing = middle
    else failing = middle
  }
  return passing
}

/** The colour of sRGB with this lightness and hue whose chroma is the nearest. */
const hexOf = ([lightness, a, b]: Lab): string => {
  const reduced = (by: number): Lab => [lightness, a * (1 - by), b * (1 - by)]
  const channels = linearOfLab(reduced(firstThat(0, 1, by => isInGamut(reduced(by)))))
  return `#${channels
    .map(channel =>
      Math.round(fromLinear(Math.min(1, Math.max(0, channel))) * 255)
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`
}

const luminanceOf = (hex: string): number => {
  const [r, g, b] = linearOf(hex)
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}

/** The contrast of two colours `#rrggbb`, from 1 to 21 (WCAG 2.2). */
export const contrastOf = (one: string, other: string): number => {
  const [low = 0, high = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => a - b)
  return (high + 0.05) / (low + 0.05)
}

const mixed = (color: string, share: number, base: string): string => {
  const [of, to] = [labOf(color), labOf(base)]
  return hexOf(
    [0, 1, 2].map(axis => (of[axis] ?? 0) * share + (to[axis] ?? 0) * (1 - share)) as unknown as Lab,
  )
}

const TEXT_CONTRAST = 4.5
/** Of links: in the dark a bare 4.5:1 of a saturated colour is hard to read. */
const LINK_CONTRAST = { light: 4.5, dark: 6 } as const
const SHAPE_CONTRAST = 3
const WHITE = '#ffffff'
const BLACK = '#0b0d11'

/** Surfaces of `src/http/pages/style.css`, those with the least contrast to links. */
const SURFACES = {
  light: { card: '#ffffff', least: ['#e7eaf0'] },
  dark: { card: '#13161b', least: ['#1e232b'] },
} as const

/** The lightness that is nearest to that of the brand, and on which white or black text can be read. */
const fillOf = ([lightness, a, b]: Lab, mode: keyof BrandColors): Pick<BrandPalette, 'fill' | 'onFill'> => {
  const at = (value: number): string => hexOf([value, a, b])
  const isShape = (value: number): boolean =>
    mode === 'light' || contrastOf(at(value), SURFACES.dark.card) >= SHAPE_CONTRAST
  const start = firstThat(lightness, 1, isShape)
  const reads = (text: string) => (value: number) => contrastOf(text, at(value)) >= TEXT_CONTRAST
  const darker = firstThat(start, 0, reads(WHITE))
  const lighter = firstThat(start, 1, reads(BLACK))
  return start - darker <= lighter - start
    ? { fill: at(darker), onFill: WHITE }
    : { fill: at(lighter), onFill: BLACK }
}

const paletteOf = (color: string, mode: keyof BrandColors): BrandPalette => {
  const lab = labOf(color)
  const [lightness, a, b] = lab
  const { card, least } = SURFACES[mode]
  const { fill, onFill } = fillOf(lab, mode)
  const tint = mixed(color, mode === 'light' ? 0.07 : 0.16, card)
  const surfaces = [...least, tint]
  const accent = firstThat(lightness, mode === 'light' ? 0 : 1, value =>
    surfaces.every(surface => contrastOf(hexOf([value, a, b]), surface) >= LINK_CONTRAST[mode]),
  )
  return {
    fill,
    fillHover: mixed(fill, 0.9, onFill === WHITE ? '#000000' : WHITE),
    fillLine: mixed(fill, 0.86, '#000000'),
    onFill,
    accent: hexOf([accent, a, b]),
    tint,
    tintLine: mixed(color, mode === 'light' ? 0.24 : 0.42, card),
  }
}

/** @param color `#rrggbb`. Every colour can be made readable. */
export const brandColors = (color: string): BrandColors => ({
  light: paletteOf(color, 'light'),
  dark: paletteOf(color, 'dark'),
})
