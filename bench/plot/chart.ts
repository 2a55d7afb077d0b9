/**
 * Draws a plot: successful responses and p99 latency against offered load, one above the other.
 */
import {
  CENTRE,
  draw,
  duration,
  FONT,
  number,
  type Panel,
  type Series,
  SIZE,
  short,
  WIDTH,
} from '#base/plots/panel'
import { logScale } from '#base/plots/scale'
import { element, escaped, type Theme, text } from '#base/plots/svg'
import { type Curve, isSaturated, type Plot } from './load-curves.ts'

/** Room for as many lines of notes, so that plots beside each other have one height. */
const NOTES = 7

/** The mean width of a character, generously, as a part of the size of the font. */
const CHARACTER = 0.56

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
  const styleOf = (index: number) => ({ color: theme.series[index] ?? theme.text, shape: index })
  const succeeded = curves.map(
    ({ service, steps }, index): Series => ({
      name: service,
      ...styleOf(index),
      points: steps.map(step => ({
        x: step.offered,
        y: step.succeeded.median,
        range: [step.succeeded.min, step.succeeded.max],
        isHollow: isSaturated(step),
      })),
    }),
  )
  const rejected = curves
    .map(
      ({ service, steps }, index): Series => ({
        name: `${service}, 503`,
        ...styleOf(index),
        points: steps
          .filter(step => step.rejected > 0)
          .map(step => ({ x: step.offered, y: step.rejected, isHollow: isSaturated(step) })),
        isDashed: true,
      }),
    )
    .filter(({ points }) => points.length > 0)
  const latencies = curves.map(
    ({ service, steps }, index): Series => ({
      name: service,
      ...styleOf(index),
      points: steps.map(step => ({
        x: step.offered,
        y: step.p99.median,
        range: [step.p99.min, step.p99.max],
        isHollow: isSaturated(step),
      })),
    }),
  )
  const valuesOf = (series: readonly Series[]): number[] =>
    series
      .flatMap(({ points }) => points.flatMap(({ y, range = [] }) => [y, ...range]))
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
      'font-family': FONT,
    },
    [
      element('title', { id: 'title' }, escaped(`${title}: responses and p99 latency against offered load`)),
      element('desc', { id: 'description' }, escaped(description(plot))),
      element('rect', { width: WIDTH, height, fill: theme.background }),
      text(title, { x: 14, y: 30, 'font-size': SIZE.title, 'font-weight': 700, fill: theme.text }),
      ...panels.map(panel => draw(panel, theme)),
      text('Offered load, requests per second', {
        x: CENTRE,
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
