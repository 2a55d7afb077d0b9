/**
 * Draws one plot as two SVGs: the labels of the y axis, and a plane as wide as there is room, of a fixed height. So text has the same size at
 * every width. No label stands on the plane: names of curves are in a legend, which the page has. Curves differ by colour and by dash.
 */
import type { Scale } from './scale.ts'
import { element, escaped, text } from './svg.ts'

/** Curves that a reader can tell apart, and for which the stylesheet has colours. */
export const MAX_CURVES = 5

/** Pixels. */
const HEIGHT = 148
const TOP = 8
const BOTTOM = 120
const LABELS_WIDTH = 48
const X_LABELS = 140

/** The width of the plane in the units of curves, which are stretched to the width that there is. */
const UNITS = 1_000

/** Curves of up to so many points have dots: a line through one point is invisible. */
const FEW = 4

/** Labels this close to an end of the axis, as a part of it, begin or end there. */
const AT_END = 0.05

/** Created once, because that is slow. */
const DIGITS = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 })

export const number = (value: number): string => DIGITS.format(value)

/** A short text of a number, such as `10k`, for ticks, which have little room. */
export const short = (value: number): string => (value < 1_000 ? number(value) : `${number(value / 1_000)}k`)

export const duration = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${number(milliseconds)} ms` : `${number(milliseconds / 1_000)} s`

/** A span of time on the x axis. */
export interface Slot {
  readonly at: number
  /** What a pointer on it shows: the time and all values. `null`: nothing is known. */
  readonly title: string | null
}

export interface Panel {
  /** At equal distances. */
  readonly slots: readonly Slot[]
  /** For each curve, its value in each slot; `null` where nothing is known. At most {@link MAX_CURVES}. */
  readonly curves: readonly (readonly (number | null)[])[]
  /** The scale of the slots, and that of the values. */
  readonly x: Scale
  readonly y: Scale
  readonly format: (value: number) => string
  readonly formatX: (value: number) => string
  /** Whether the first curve has a tinted area below: not on a logarithmic scale, which has no zero. */
  readonly hasArea: boolean
}

interface Point {
  /** From 0 to 1. */
  readonly x: number
  /** Pixels. */
  readonly y: number
}

const yOf = ({ y }: Panel, value: number): number => BOTTOM - y.position(value) * (BOTTOM - TOP)

const percent = (share: number): string => `${Math.round(share * 1_000) / 10}%`

const pointsOf = (panel: Panel, curve: readonly (number | null)[]): readonly Point[] =>
  curve.flatMap((value, slot) =>
    value === null
      ? []
      : [{ x: panel.x.position(panel.slots[slot]?.at ?? panel.x.low), y: yOf(panel, value) }],
  )

const line = (points: readonly Point[]): string =>
  points.map(({ x, y }) => `${(x * UNITS).toFixed(1)},${y.toFixed(1)}`).join(' ')

const curvesOf = (panel: Panel): string => {
  const curves = panel.curves.map(curve => pointsOf(panel, curve))
  const [first = []] = curves
  const [begin, end] = [first[0], first.at(-1)]
  const area =
    panel.hasArea && begin !== undefined && end !== undefined && first.length > 1
      ? element('polygon', {
          class: 'area-1',
          points: `${begin.x * UNITS},${BOTTOM} ${line(first)} ${end.x * UNITS},${BOTTOM}`,
        })
      : ''
  const lines = curves.map((points, index) =>
    element('polyline', { class: `curve series-${index + 1}`, points: line(points) }),
  )
  const stretched = element(
    'svg',
    { width: '100%', height: HEIGHT, viewBox: `0 0 ${UNITS} ${HEIGHT}`, preserveAspectRatio: 'none' },
    [area, ...lines].join(''),
  )
  const dots = curves.flatMap((points, index) =>
    points.length > FEW
      ? []
      : points.map(({ x, y }) =>
          element('circle', { class: `dot-${index + 1}`, cx: percent(x), cy: y, r: 4.5 }),
        ),
  )
  return stretched + dots.join('')
}

/** Areas that show the values of a slot to a pointer. */
const slotsOf = ({ slots, x }: Panel): string => {
  const width = 1 / Math.max(1, slots.length - 1)
  return slots
    .map(({ at, title }) => {
      if (title === null) return ''
      const begin = Math.max(0, x.position(at) - width / 2)
      const end = Math.min(1, x.position(at) + width / 2)
      return element(
        'rect',
        { class: 'slot', x: percent(begin), width: percent(end - begin), y: TOP, height: BOTTOM - TOP },
        element('title', {}, escaped(title)),
      )
    })
    .join('')
}

const anchorAt = (position: number): string => {
  if (position < AT_END) return 'start'
  return position > 1 - AT_END ? 'end' : 'middle'
}

const labelOfX = (value: number, index: number, { x, formatX }: Panel): string => {
  const position = x.position(value)
  return text(formatX(value), {
    ...(index % 2 === 1 && { class: 'tick-odd' }),
    x: percent(position),
    y: X_LABELS,
    'text-anchor': anchorAt(position),
  })
}

/** The SVGs of a plot, for an element with the class `plot-body`, which names it. */
export const draw = (panel: Panel): string => {
  const { y, x, format } = panel
  const labels = y.ticks.map(value =>
    text(format(value), { x: LABELS_WIDTH - 8, y: yOf(panel, value) + 4, 'text-anchor': 'end' }),
  )
  const grid = y.ticks.map(value =>
    element('line', {
      class: value === y.low ? 'base' : 'grid',
      x1: 0,
      x2: '100%',
      y1: yOf(panel, value),
      y2: yOf(panel, value),
    }),
  )
  const plane = [
    ...grid,
    curvesOf(panel),
    slotsOf(panel),
    ...x.ticks.map((value, index) => labelOfX(value, index, panel)),
  ]
  return [
    element('svg', { width: LABELS_WIDTH, height: HEIGHT, 'aria-hidden': 'true' }, labels.join('')),
    element('svg', { width: '100%', height: HEIGHT, 'aria-hidden': 'true' }, plane.join('')),
  ].join('\n')
}
