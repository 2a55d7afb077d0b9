/**
 * Draws a plot: successful responses and p99 latency against offered load, one above the other. Curves have labels instead of a
 * legend, and markers of different shapes, so that nobody needs to tell colours apart. Readable at a width of 360 pixels.
 */
import { along, Labels, type Point } from './labels.ts'
import { type Curve, isSaturated, type Plot, type Step } from './load-curves.ts'
import { logScale, type Scale } from './scale.ts'
import { element, escaped, type Theme, text } from './svg.ts'

const WIDTH = 420
const LEFT = 62
const RIGHT = 402
const PANEL_HEIGHT = 170

/** Room for as many lines of notes, so that plots beside each other have one height. */
const NOTES = 7

/** The mean width of a character, generously, as a part of the size of the font. */
const CHARACTER = 0.56

const SIZE = { title: 17, heading: 13, label: 13, tick: 12, note: 11 }

/** The same of bold text. */
const BOLD_CHARACTER = 0.7

const number = (value: number): string => value.toLocaleString('en-US', { maximumSignificantDigits: 3 })

/** For ticks, which have little room: 10k. */
const short = (value: number): string => (value < 1_000 ? number(value) : `${number(value / 1_000)}k`)

const duration = (milliseconds: number): string =>
  milliseconds < 1_000 ? `${number(milliseconds)} ms` : `${number(milliseconds / 1_000)} s`

interface Series {
  readonly name: string
  readonly color: string
  /** Index of the marker. */
  readonly shape: number
  readonly steps: readonly Step[]
  readonly value: (step: Step) => number
  /** The least and the greatest of the rounds. */
  readonly range?: (step: Step) => readonly [number, number]
  readonly isDashed?: boolean
}

interface Panel {
  readonly heading: string
  readonly top: number
  readonly x: Scale
  readonly y: Scale
  readonly format: (value: number) => string
  readonly series: readonly Series[]
  /** Whether to draw the line on which every request succeeds. */
  readonly hasDiagonal: boolean
}

const marker = ({ color, shape }: Series, { x, y }: Point, isHollow: boolean, theme: Theme): string => {
  const fill = { fill: isHollow ? theme.background : color, stroke: color, 'stroke-width': 1.6 }
  return shape === 0
    ? element('circle', { cx: x, cy: y, r: 3.6, ...fill })
    : element('rect', { x: x - 3.2, y: y - 3.2, width: 6.4, height: 6.4, ...fill })
}

const points = (line: readonly Point[]): string =>
  line.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ')

const axes = ({ heading, top, x, y, format }: Panel, theme: Theme): string => {
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
      text(short(value), { x: atX(value), y: bottom + 17, 'text-anchor': 'middle', ...tick }),
    ),
    element('line', { x1: LEFT, x2: RIGHT, y1: bottom, y2: bottom, stroke: theme.muted, 'stroke-width': 1 }),
  ].join('')
}

const draw = (panel: Panel, theme: Theme): string => {
  const { top, x, y, series, hasDiagonal } = panel
  const bottom = top + PANEL_HEIGHT
  const at = (offered: number, value: number): Point => ({
    x: LEFT + x.position(offered) * (RIGHT - LEFT),
    y: bottom - y.position(value) * PANEL_HEIGHT,
  })
  const lines = series.map(({ steps, value }) => steps.map(step => at(step.offered, value(step))))
  const from = Math.max(x.low, y.low)
  const to = Math.min(x.high, y.high)
  const diagonal = hasDiagonal ? [at(from, from), at(to, to)] : []
  const labels = new Labels({ left: LEFT, top, right: RIGHT, bottom }, [
    ...lines.flatMap(along),
    ...along(diagonal),
  ])
  const bands = series.map(({ steps, range, color }) => {
    if (range === undefined) return ''
    const low = steps.map(step => at(step.offered, range(step)[0]))
    const high = steps.map(step => at(step.offered, range(step)[1]))
    return element('polygon', { points: points([...low, ...high.toReversed()]), fill: color, opacity: 0.18 })
  })
  const curves = series.map((one, index) => {
    const line = lines[index] ?? []
    const dash = one.isDashed ? { 'stroke-dasharray': '4 3' } : {}
    const stroke = { fill: 'none', stroke: one.color, 'stroke-width': 2, 'stroke-linejoin': 'round', ...dash }
    return [
      element('polyline', { points: points(line), ...stroke }),
      ...line.map((point, step) => marker(one, point, isSaturated(one.steps[step] as Step), theme)),
    ].join('')
  })
  const names = series.map(({ name, color }, index) => {
    const placed = labels.place(lines[index] ?? [], name.length * SIZE.label * BOLD_CHARACTER, SIZE.label)
    return text(name, { ...placed.at, 'font-size': SIZE.label, 'font-weight': 600, fill: color })
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

/** Breaks a text into lines. */
const wrapped = (content: string, size: number, width: number): readonly string[] => {
  const lines: string[] = []
  for (const word of content.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`.trimStart()
    if (lines.length > 0 && longer.length * size * CHARACTER <= width) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}

const succeededAtMost = ({ steps }: Curve): number =>
  Math.max(...steps.map(({ succeeded }) => succeeded.median))

const p99AtLeast = ({ steps }: Curve): number => Math.min(...steps.map(({ p99 }) => p99.median))

/** What a reader of the picture sees, in words. */
export const description = ({ curves }: Plot): string =>
  curves
    .map(
      curve =>
        `${curve.service}: up to ${number(succeededAtMost(curve))} successful responses a second, p99 from ${duration(p99AtLeast(curve))}.`,
    )
    .join(' ')

/** @param conditions of the measurement, in words. */
export const chart = (plot: Plot, conditions: string, theme: Theme): string => {
  const { title, curves } = plot
  const steps = curves.flatMap(curve => curve.steps)
  const x = logScale(steps.map(({ offered }) => offered))
  const succeeded = curves.map(
    ({ service, steps }, index): Series => ({
      name: service,
      color: theme.series[index] ?? theme.text,
      shape: index,
      steps,
      value: step => step.succeeded.median,
      range: ({ succeeded }) => [succeeded.min, succeeded.max],
    }),
  )
  const rejected = succeeded
    .map(series => ({
      ...series,
      name: `${series.name}, 503`,
      steps: series.steps.filter(step => step.rejected > 0),
      value: (step: Step) => step.rejected,
      isDashed: true,
    }))
    .map(({ range, ...series }) => series)
    .filter(({ steps }) => steps.length > 0)
  const latencies = succeeded.map(
    (series): Series => ({
      ...series,
      value: step => step.p99.median,
      range: ({ p99 }) => [p99.min, p99.max],
    }),
  )
  const valuesOf = (series: readonly Series[]): number[] =>
    series
      .flatMap(({ steps, value, range }) => steps.flatMap(step => [value(step), ...(range?.(step) ?? [])]))
      .filter(value => value > 0)
  const throughput = [...succeeded, ...rejected]
  const panels: readonly Panel[] = [
    {
      heading: 'Successful responses per second',
      top: 72,
      x,
      y: logScale(valuesOf(throughput)),
      format: short,
      series: throughput,
      hasDiagonal: true,
    },
    {
      heading: 'p99 latency, from the time a request was due',
      top: 310,
      x,
      y: logScale(valuesOf(latencies)),
      format: duration,
      series: latencies,
      hasDiagonal: false,
    },
  ]
  const notes = [
    'Both scales are logarithmic. Bands: least and greatest of the rounds. Dotted: every request succeeds.',
    'Hollow: saturated; p99 of a service that rejects nothing then grows as long as the load lasts.',
    ...(rejected.length === 0 ? [] : ['Dashed: rejected requests, 503 with Retry-After.']),
    `Measured on ${conditions}.`,
  ].flatMap(note => wrapped(note, SIZE.note, WIDTH - 28))
  const notesTop = 542
  const height = notesTop + Math.max(NOTES, notes.length) * 15
  return `${element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: 'img',
      'aria-labelledby': 'title description',
      'font-family': "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    },
    [
      element('title', { id: 'title' }, escaped(`${title}: responses and p99 latency against offered load`)),
      element('desc', { id: 'description' }, escaped(description(plot))),
      element('rect', { width: WIDTH, height, fill: theme.background }),
      text(title, { x: 14, y: 30, 'font-size': SIZE.title, 'font-weight': 700, fill: theme.text }),
      ...panels.map(panel => draw(panel, theme)),
      text('Offered load, requests per second', {
        x: (LEFT + RIGHT) / 2,
        y: 518,
        'text-anchor': 'middle',
        'font-size': SIZE.tick,
        fill: theme.text,
      }),
      ...notes.map((note, line) =>
        text(note, { x: 14, y: notesTop + line * 15, 'font-size': SIZE.note, fill: theme.muted }),
      ),
    ].join('\n'),
  )}\n`
}
