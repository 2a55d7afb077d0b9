/** Draws the plots of the overview, each with a table of the same values. */

import { draw, duration, short } from '#base/plots/panel'
import { linearScale, logScale, timeScale } from '#base/plots/scale'
import { type ConsoleContext, type ConsolePlot, Html, html } from '#http/pages/feature-pages'
import { textsOf } from './frame.ts'
import { type Curve, curvesOf, type History } from './history-curves.ts'
import { DAY, USERS_SCOPE } from './history-recorder.ts'

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
    unit: { en: 'with requests, about', de: 'mit Anfragen, etwa' },
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

/** The name of a curve that has none of its own. */
const curveName = ({ say, word }: ConsoleContext, plot: ConsolePlot, { name }: Curve): string =>
  name === '' ? say(plot.title) : name.split(', ').map(word).join(', ')

const numberOf = ({ kind }: ConsolePlot, value: number): string =>
  kind === 'quantiles' ? duration(value) : short(value)

const textOfValue = (context: ConsoleContext, plot: ConsolePlot, value: number | null | undefined): string =>
  value == null ? textsOf(context).none : numberOf(plot, value)

/** Times of slots, in UTC. Slow to create, so once for each language. */
const slotFormats = new Map<string, Intl.DateTimeFormat>()

const slotFormat = (language: string, length: number): Intl.DateTimeFormat => {
  const isOfDays = length > DAY
  const key = `${language} ${isOfDays}`
  const format =
    slotFormats.get(key) ??
    new Intl.DateTimeFormat(language, {
      timeZone: 'UTC',
      ...(isOfDays
        ? { day: 'numeric', month: 'short' }
        : { hour: '2-digit', minute: '2-digit', hour12: false }),
    })
  slotFormats.set(key, format)
  return format
}

const legendOf = (context: ConsoleContext, plot: ConsolePlot, curves: readonly Curve[]): Html =>
  html`<ul class="legend">${curves.map(
    (curve, index) =>
      html`<li><svg class="key" viewBox="0 0 18 8" aria-hidden="true"><line class="series-${index + 1}" x1="0" x2="18" y1="4" y2="4"/></svg>${curveName(
        context,
        plot,
        curve,
      )} <strong>${textOfValue(
        context,
        plot,
        curve.values.findLast(value => value !== null),
      )}</strong></li>`,
  )}</ul>`

const svgsOf = (
  context: ConsoleContext,
  plot: ConsolePlot,
  { range, buckets }: History,
  curves: readonly Curve[],
): Html => {
  const values = curves.flatMap(curve => curve.values.filter(value => value !== null))
  const isLogarithmic = plot.kind === 'quantiles' && values.every(value => value > 0)
  const format = slotFormat(context.language, range.length)
  const known = buckets.map((_, bucket) => curves.some(curve => (curve.values[bucket] ?? null) !== null))
  const titleOf = (beginsAt: number, bucket: number): string =>
    [
      `${format.format(beginsAt)} UTC`,
      ...curves.map(
        curve => `${curveName(context, plot, curve)}: ${textOfValue(context, plot, curve.values[bucket])}`,
      ),
    ].join('\n')
  // Text in it is escaped by `element` and `text`.
  return new Html(
    draw({
      slots: buckets.map(({ beginsAt }, bucket) => ({
        at: beginsAt,
        title: known[bucket] ? titleOf(beginsAt, bucket) : null,
      })),
      curves: curves.map(curve => curve.values),
      x: timeScale(buckets[0]?.beginsAt ?? 0, buckets.at(-1)?.beginsAt ?? 1, range.tick),
      y: isLogarithmic ? logScale(values) : linearScale(values),
      format: value => numberOf(plot, value),
      formatX: value => format.format(value),
      hasArea: !isLogarithmic,
    }),
  )
}

const tableOf = (
  context: ConsoleContext,
  plot: ConsolePlot,
  { range, buckets }: History,
  curves: readonly Curve[],
): Html => {
  const format = slotFormat(context.language, range.length)
  const line = (beginsAt: number, index: number): Html =>
    html`<tr><th scope="row">${format.format(beginsAt)}</th>${curves.map(
      ({ values }) => html`<td>${textOfValue(context, plot, values[index])}</td>`,
    )}</tr>`
  const known = buckets.flatMap(({ beginsAt }, index) =>
    curves.some(({ values }) => (values[index] ?? null) !== null) ? [line(beginsAt, index)] : [],
  )
  const title = `${context.say(plot.title)}: ${textsOf(context).table}`
  return html`<details class="disclosure values"><summary>${title}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table><thead><tr><th scope="col">UTC</th>${curves.map(curve => html`<th scope="col">${curveName(context, plot, curve)}</th>`)}</tr></thead>
<tbody>${known.toReversed()}</tbody></table></div></details>`
}

/** What a picture shows, for those who do not see it. */
const summaryOf = (context: ConsoleContext, plot: ConsolePlot, curves: readonly Curve[]): string => {
  const latest = curves.map(
    curve =>
      `${curveName(context, plot, curve)} ${textOfValue(
        context,
        plot,
        curve.values.findLast(value => value !== null),
      )}`,
  )
  return `${context.say(plot.title)}, ${context.say(plot.unit)}: ${latest.join(', ')}`
}

export const plotOf = (context: ConsoleContext, plot: ConsolePlot, history: History): Html => {
  const { say } = context
  const curves = curvesOf(history, plot).filter(({ values }) => values.some(value => value !== null))
  const isEmpty = curves.length === 0
  return html`<section class="card plot"><div class="plot-head"><h2>${say(plot.title)}</h2>${!isEmpty && html`<span>${say(plot.unit)}</span>`}</div>
${
  isEmpty
    ? html`<p class="none">${textsOf(context).noValues}</p>`
    : html`${legendOf(context, plot, curves)}
<div class="plot-body" role="img" aria-label="${summaryOf(context, plot, curves)}">
${svgsOf(context, plot, history, curves)}
</div>
${tableOf(context, plot, history, curves)}`
}
</section>`
}

/** The last value of a gauge of the history. */
export const latestOf = ({ buckets }: History, gauge: string): number | null =>
  buckets.map(({ values }) => values.gauges[gauge]).findLast(value => value !== undefined) ?? null
