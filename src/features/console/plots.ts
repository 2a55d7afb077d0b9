/** Draws the plots of the overview, each with a table of the same values. */

import { draw, duration, FONT, type Series, SIZE, short, WIDTH } from '#base/plots/panel'
import { linearScale, logScale, timeScale } from '#base/plots/scale'
import { element, escaped, THEME, text } from '#base/plots/svg'
import { type ConsoleContext, type ConsolePlot, Html, html, time } from '#http/pages/feature-pages'
import { type Curve, curvesOf, type History } from './history-curves.ts'
import { DAY, USERS_SCOPE } from './history-recorder.ts'
import { textsOf } from './render.ts'

const PER_MINUTE = { en: 'per minute', de: 'pro Minute' }

const DURATION_METRIC = 'http_server_request_duration_seconds'

export const CORE_PLOTS: readonly ConsolePlot[] = [
  {
    title: { en: 'Sign-ins', de: 'Anmeldungen' },
    unit: PER_MINUTE,
    metric: 'gatehouse_sign_ins_total',
    kind: 'rate',
    curve: ({ method, outcome }) => `${method}, ${outcome}`,
  },
  {
    title: { en: 'Sign-ups', de: 'Registrierungen' },
    unit: PER_MINUTE,
    metric: 'gatehouse_sign_ups_total',
    kind: 'rate',
    curve: ({ outcome = '' }) => outcome,
  },
  {
    title: { en: 'Active users', de: 'Aktive Nutzer' },
    unit: { en: 'about, with a request in the last', de: 'etwa, mit einer Anfrage in den letzten' },
    metric: 'active users',
    scope: USERS_SCOPE,
    kind: 'gauge',
    curve: ({ span = '' }) => span,
  },
  {
    title: { en: 'Requests', de: 'Anfragen' },
    unit: PER_MINUTE,
    metric: DURATION_METRIC,
    kind: 'rate',
    curve: ({ status = '' }) => `${status[0]}xx`,
  },
  {
    title: { en: 'Latency of requests', de: 'Latenz der Anfragen' },
    unit: { en: 'p50 and p99', de: 'p50 und p99' },
    metric: DURATION_METRIC,
    kind: 'quantiles',
  },
]

const TOP = 44
const HEIGHT = 244

/** Values up to so many have markers: a line through one point is invisible. */
const FEW = 3

const seriesOf = ({ name, values }: Curve, index: number, { buckets }: History): Series => {
  const points = values.flatMap((y, bucket) => (y === null ? [] : [{ x: buckets[bucket]?.beginsAt ?? 0, y }]))
  return {
    name,
    color: THEME.series[index] ?? THEME.text,
    shape: points.length <= FEW ? index % 2 : null,
    points,
  }
}

const numberOf = ({ kind }: ConsolePlot, value: number): string =>
  kind === 'quantiles' ? duration(value) : short(value)

const svgOf = (
  { language, say }: ConsoleContext,
  plot: ConsolePlot,
  history: History,
  series: readonly Series[],
): Html => {
  const { range, buckets } = history
  const values = series.flatMap(({ points }) => points.map(({ y }) => y))
  const isLogarithmic = plot.kind === 'quantiles' && values.every(value => value > 0)
  const first = buckets[0]?.beginsAt ?? 0
  const last = buckets.at(-1)?.beginsAt ?? 1
  const format = new Intl.DateTimeFormat(language, {
    timeZone: 'UTC',
    ...(range.length > DAY
      ? { day: 'numeric', month: 'short' }
      : { hour: '2-digit', minute: '2-digit', hour12: false }),
  })
  const id = `plot-${plot.metric.replaceAll(/\W/g, '-')}-${plot.kind}`
  const content = [
    element('title', { id }, escaped(`${say(plot.title)}, ${say(plot.unit)}`)),
    draw({
      heading: say(plot.unit),
      top: TOP,
      x: timeScale(first, last, range.tick),
      y: isLogarithmic ? logScale(values) : linearScale(values),
      format: value => numberOf(plot, value),
      formatX: value => format.format(value),
      series,
    }),
    text('UTC', { x: 14, y: HEIGHT - 13, 'font-size': SIZE.note, fill: THEME.muted }),
  ].join('')
  // Text in it is escaped by `element` and `text`.
  return new Html(
    element(
      'svg',
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: 'img',
        'aria-labelledby': id,
        'font-family': FONT,
      },
      content,
    ),
  )
}

const tableOf = (
  context: ConsoleContext,
  plot: ConsolePlot,
  { buckets }: History,
  curves: readonly Curve[],
): Html => {
  const texts = textsOf(context)
  const line = (beginsAt: number, index: number): Html =>
    html`<tr><td data-label="${texts.time}"><div>${time(context, new Date(beginsAt).toISOString())}</div></td>${curves.map(
      ({ name, values }) => {
        const value = values[index] ?? null
        return html`<td data-label="${name || context.say(plot.unit)}"><div>${value === null ? texts.none : numberOf(plot, value)}</div></td>`
      },
    )}</tr>`
  const known = buckets.flatMap(({ beginsAt }, index) =>
    curves.some(({ values }) => (values[index] ?? null) !== null) ? [line(beginsAt, index)] : [],
  )
  return html`<details><summary>${texts.table}: ${context.say(plot.title)}</summary>
<table><thead><tr><th scope="col">${texts.time}</th>${curves.map(({ name }) => html`<th scope="col">${name || context.say(plot.unit)}</th>`)}</tr></thead>
<tbody>${known.toReversed()}</tbody></table></details>`
}

export const plotOf = (context: ConsoleContext, plot: ConsolePlot, history: History): Html => {
  const curves = curvesOf(history, plot).filter(({ values }) => values.some(value => value !== null))
  const series = curves.map((curve, index) => seriesOf(curve, index, history))
  return html`<section class="plot"><h2>${context.say(plot.title)}</h2>
${
  series.length === 0
    ? html`<p class="muted">${textsOf(context).noValues}</p>`
    : html`${svgOf(context, plot, history, series)}
${tableOf(context, plot, history, curves)}`
}
</section>`
}

/** The last value of a gauge of the history. */
export const latestOf = ({ buckets }: History, gauge: string): number | null =>
  buckets.map(({ values }) => values.gauges[gauge]).findLast(value => value !== undefined) ?? null
