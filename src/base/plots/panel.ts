/**
 * Draws one panel of a plot: axes with units, and curves. Curves have labels instead of a legend, and markers of different shapes, so that
 * nobody needs to tell colours apart. Readable at a width of 360 pixels.
 */
import { along, Labels, type Point } from './labels.ts'
import type { Scale } from './scale.ts'
import { element, THEME, text } from './svg.ts'

export const WIDTH = 420
const PANEL_HEIGHT = 170

const LEFT = 62
const RIGHT = 402

/** Sizes of fonts, in pixels. */
export const SIZE = { heading: 13, label: 13, tick: 12, note: 11 }

/** The mean width of a character of bold text, generously, as a part of the size of the font. */
const BOLD_CHARACTER = 0.7

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

/** Created once, because that is slow. */
const DIGITS = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })

export const number = (value: number): string => DIGITS.format(value)

/** A short text of a number, such as `10k`, for ticks, which have little room. */
export const short = (value: number): string => (value < 1_000 ? number(value) : `${number(value / 1_000)}k`)

export const duration = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${number(milliseconds)} ms` : `${number(milliseconds / 1_000)} s`

export interface Series {
  readonly name: string
  readonly color: string
  /** Index of the marker; `null`: a line alone. */
  readonly shape: number | null
  /** Values of both axes. */
  readonly points: readonly Point[]
}

export interface Panel {
  readonly heading: string
  /** Pixels from the top of the picture. */
  readonly top: number
  readonly x: Scale
  readonly y: Scale
  readonly format: (value: number) => string
  readonly formatX: (value: number) => string
  readonly series: readonly Series[]
}

const marker = ({ color: fill, shape }: Series, { x, y }: Point): string => {
  if (shape === null) return ''
  return shape === 0
    ? element('circle', { cx: x, cy: y, r: 4.4, fill })
    : element('rect', { x: x - 4, y: y - 4, width: 8, height: 8, fill })
}

const points = (line: readonly Point[]): string =>
  line.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')

const axes = ({ heading, top, x, y, format, formatX }: Panel): string => {
  const bottom = top + PANEL_HEIGHT
  const atX = (value: number): number => LEFT + x.position(value) * (RIGHT - LEFT)
  const atY = (value: number): number => bottom - y.position(value) * PANEL_HEIGHT
  const grid = { stroke: THEME.grid, 'stroke-width': 1 }
  const tick = { 'font-size': SIZE.tick, fill: THEME.muted }
  return [
    text(heading, {
      x: 14,
      y: top - 12,
      'font-size': SIZE.heading,
      'font-weight': 600,
      fill: THEME.text,
    }),
    ...x.ticks.map(value =>
      element('line', { x1: atX(value), x2: atX(value), y1: top, y2: bottom, ...grid }),
    ),
    ...y.ticks.map(value =>
      element('line', { x1: LEFT, x2: RIGHT, y1: atY(value), y2: atY(value), ...grid }),
    ),
    ...y.ticks.map(value =>
      text(format(value), { x: LEFT - 7, y: atY(value) + 4, 'text-anchor': 'end', ...tick }),
    ),
    ...x.ticks.map(value =>
      text(formatX(value), { x: atX(value), y: bottom + 17, 'text-anchor': 'middle', ...tick }),
    ),
    element('line', { x1: LEFT, x2: RIGHT, y1: bottom, y2: bottom, stroke: THEME.muted, 'stroke-width': 1 }),
  ].join('')
}

/** Points beside which a label may stand: trying each of a long line would take longer than drawing it. */
const ANCHORS = 12

const thinned = (line: readonly Point[]): readonly Point[] => {
  const every = Math.ceil(line.length / ANCHORS)
  return every <= 1 ? line : line.filter((_, index) => index % every === 0)
}

export const draw = (panel: Panel): string => {
  const { top, x, y, series } = panel
  const bottom = top + PANEL_HEIGHT
  const at = (point: Point): Point => ({
    x: LEFT + x.position(point.x) * (RIGHT - LEFT),
    y: bottom - y.position(point.y) * PANEL_HEIGHT,
  })
  const lines = series.map(one => one.points.map(at))
  const labels = new Labels({ left: LEFT, top, right: RIGHT, bottom }, lines.flatMap(along))
  const curves = series.map((one, index) => {
    const line = lines[index] ?? []
    const stroke = { fill: 'none', stroke: one.color, 'stroke-width': 2, 'stroke-linejoin': 'round' }
    return [
      element('polyline', { points: points(line), ...stroke }),
      ...line.map(point => marker(one, point)),
    ].join('')
  })
  const names = series.map(({ name, color }, index) => {
    const width = name.length * SIZE.label * BOLD_CHARACTER
    const placed = labels.place(thinned(lines[index] ?? []), width, SIZE.label)
    // A rim in the colour of the background, where a name lies over curves.
    const rim = {
      stroke: THEME.background,
      'stroke-width': 3,
      'stroke-linejoin': 'round',
      'paint-order': 'stroke',
    }
    return text(name, { ...placed, 'font-size': SIZE.label, 'font-weight': 600, fill: color, ...rim })
  })
  return [axes(panel), ...curves, ...names].join('')
}
