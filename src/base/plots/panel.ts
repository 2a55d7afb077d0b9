/**
 * Draws one panel of a plot: axes with units, and curves. Curves have labels instead of a legend, and markers of different shapes, so that
 * nobody needs to tell colours apart. Readable at a width of 360 pixels.
 */
import { along, Labels, type Point } from './labels.ts'
import type { Scale } from './scale.ts'
import { element, type Theme, text } from './svg.ts'

/** Of every plot. */
export const WIDTH = 420
export const PANEL_HEIGHT = 170

const LEFT = 62
const RIGHT = 402

/** The middle of the axis, for its name. */
export const CENTRE = (LEFT + RIGHT) / 2

/** Of fonts. */
export const SIZE = { title: 17, heading: 13, label: 13, tick: 12, note: 11 }

/** The mean width of a character of bold text, generously, as a part of the size of the font. */
const BOLD_CHARACTER = 0.7

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

/** Made once: it takes 50 µs. */
const DIGITS = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })

export const number = (value: number): string => DIGITS.format(value)

/** For ticks, which have little room: 10k. */
export const short = (value: number): string => (value < 1_000 ? number(value) : `${number(value / 1_000)}k`)

export const duration = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${number(milliseconds)} ms` : `${number(milliseconds / 1_000)} s`

export interface PlotPoint {
  readonly x: number
  readonly y: number
  /** The least and the greatest value, for a band. */
  readonly range?: readonly [number, number]
  readonly isHollow?: boolean
}

export interface Series {
  readonly name: string
  readonly color: string
  /** Index of the marker; `null`: a line alone. */
  readonly shape: number | null
  readonly points: readonly PlotPoint[]
  readonly isDashed?: boolean
}

export interface Panel {
  readonly heading: string
  /** Pixels from the top of the picture. */
  readonly top: number
  readonly x: Scale
  readonly y: Scale
  readonly format: (value: number) => string
  /** Default: {@link short}. */
  readonly formatX?: (value: number) => string
  readonly series: readonly Series[]
  /** Whether to draw the line on which both axes have one value. */
  readonly hasDiagonal?: boolean
}

const marker = ({ color, shape }: Series, { x, y }: Point, isHollow: boolean, theme: Theme): string => {
  if (shape === null) return ''
  const fill = { fill: isHollow ? theme.background : color, stroke: color, 'stroke-width': 1.6 }
  return shape === 0
    ? element('circle', { cx: x, cy: y, r: 3.6, ...fill })
    : element('rect', { x: x - 3.2, y: y - 3.2, width: 6.4, height: 6.4, ...fill })
}

const points = (line: readonly Point[]): string =>
  line.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')

const axes = ({ heading, top, x, y, format, formatX = short }: Panel, theme: Theme): string => {
  const bottom = top + PANEL_HEIGHT
  const atX = (value: number): number => LEFT + x.position(value) * (RIGHT - LEFT)
  const atY = (value: number): number => bottom - y.position(value) * PANEL_HEIGHT
  const grid = { stroke: theme.grid, 'stroke-width': 1 }
  const tick = { 'font-size': SIZE.tick, fill: theme.muted }
  return [
    text(heading, {
      x: 14,
      y: top - 12,
      'font-size': SIZE.heading,
      'font-weight': 600,
      fill: theme.text,
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
    element('line', { x1: LEFT, x2: RIGHT, y1: bottom, y2: bottom, stroke: theme.muted, 'stroke-width': 1 }),
  ].join('')
}

/** Points beside which a label may stand: trying each of a long line would take longer than drawing it. */
const ANCHORS = 12

const thinned = (line: readonly Point[]): readonly Point[] => {
  const every = Math.ceil(line.length / ANCHORS)
  return every <= 1 ? line : line.filter((_, index) => index % every === 0)
}

export const draw = (panel: Panel, theme: Theme): string => {
  const { top, x, y, series, hasDiagonal = false } = panel
  const bottom = top + PANEL_HEIGHT
  const at = (offered: number, value: number): Point => ({
    x: LEFT + x.position(offered) * (RIGHT - LEFT),
    y: bottom - y.position(value) * PANEL_HEIGHT,
  })
  const lines = series.map(one => one.points.map(point => at(point.x, point.y)))
  const from = Math.max(x.low, y.low)
  const to = Math.min(x.high, y.high)
  const diagonal = hasDiagonal ? [at(from, from), at(to, to)] : []
  const labels = new Labels({ left: LEFT, top, right: RIGHT, bottom }, [
    ...lines.flatMap(along),
    ...along(diagonal),
  ])
  const bands = series.map(({ points: ofSeries, color }) => {
    const ranges = ofSeries.flatMap(({ x: value, range }) => (range === undefined ? [] : [{ value, range }]))
    if (ranges.length === 0) return ''
    const low = ranges.map(({ value, range }) => at(value, range[0]))
    const high = ranges.map(({ value, range }) => at(value, range[1]))
    return element('polygon', { points: points([...low, ...high.toReversed()]), fill: color, opacity: 0.18 })
  })
  const curves = series.map((one, index) => {
    const line = lines[index] ?? []
    const dash = one.isDashed ? { 'stroke-dasharray': '4 3' } : {}
    const stroke = { fill: 'none', stroke: one.color, 'stroke-width': 2, 'stroke-linejoin': 'round', ...dash }
    return [
      element('polyline', { points: points(line), ...stroke }),
      ...line.map((point, step) => marker(one, point, one.points[step]?.isHollow ?? false, theme)),
    ].join('')
  })
  const names = series.map(({ name, color }, index) => {
    const placed = labels.place(
      thinned(lines[index] ?? []),
      name.length * SIZE.label * BOLD_CHARACTER,
      SIZE.label,
    )
    const rim = theme.hasRims
      ? { stroke: theme.background, 'stroke-width': 3, 'stroke-linejoin': 'round', 'paint-order': 'stroke' }
      : {}
    return text(name, { ...placed, 'font-size': SIZE.label, 'font-weight': 600, fill: color, ...rim })
  })
  const reference = hasDiagonal
    ? element('polyline', {
        points: points(diagonal),
        fill: 'none',
        stroke: theme.muted,
        'stroke-width': 1,
        'stroke-dasharray': '2 3',
      })
    : ''
  return [axes(panel, theme), reference, ...bands, ...curves, ...names].join('')
}
