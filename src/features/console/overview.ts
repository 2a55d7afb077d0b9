/** The first page of the console: how many users there are, plots, the latest events. */
import {
  type ApiResponse,
  type ConsoleContext,
  type ConsolePlot,
  type ConsoleSection,
  type Html,
  html,
  type Text,
} from '#http/pages/feature-pages'
import { textsOf } from './frame.ts'
import { type History, RANGES, type RangeName } from './history-curves.ts'
import { ACTIVE_USERS, ALL_USERS, USERS_SCOPE } from './history-recorder.ts'
import { latestOf, plotOf } from './plots.ts'
import { tableOf } from './render.ts'

export const PLOTS_SCOPE = 'metrics:read'

const RANGE_NAMES: Readonly<Record<RangeName, Text>> = {
  hour: { en: 'Hour', de: 'Stunde' },
  day: { en: 'Day', de: 'Tag' },
  month: { en: '30 days', de: '30 Tage' },
  quarter: { en: '90 days', de: '90 Tage' },
}

const [HOUR_GAUGE = '', DAY_GAUGE = '', MONTH_GAUGE = ''] = Object.keys(ACTIVE_USERS)

const NUMBERS: readonly (readonly [label: Text, gauge: string])[] = [
  [{ en: 'Users, about', de: 'Nutzer, etwa' }, ALL_USERS],
  [{ en: 'Active in the last hour, about', de: 'Aktiv in der letzten Stunde, etwa' }, HOUR_GAUGE],
  [{ en: 'Active in the last day, about', de: 'Aktiv am letzten Tag, etwa' }, DAY_GAUGE],
  [{ en: 'Active in the last 30 days, about', de: 'Aktiv in den letzten 30 Tagen, etwa' }, MONTH_GAUGE],
]

export interface OverviewState {
  readonly range: RangeName
  readonly plots: readonly ConsolePlot[]
  /** `null` for a key that may not read metrics. */
  readonly history: History | null
  /** `null` for a key that may not read them. */
  readonly events: {
    readonly section: ConsoleSection
    readonly response: ApiResponse
    readonly names: ReadonlyMap<string, string>
  } | null
}

const numbersOf = ({ language, say }: ConsoleContext, history: History): Html =>
  html`<dl class="card numbers">${NUMBERS.map(
    ([label, gauge]) =>
      html`<div><dt>${say(label)}</dt><dd>${latestOf(history, gauge)?.toLocaleString(language) ?? '–'}</dd></div>`,
  )}</dl>`

const rangesOf = (context: ConsoleContext, current: RangeName): Html => {
  const { root, say } = context
  const names = Object.keys(RANGES) as RangeName[]
  const link = (name: RangeName): Html =>
    html`<a href="${root}console?range=${name}"${name === current && html` aria-current="true"`}>${say(RANGE_NAMES[name])}</a>`
  return html`<div class="buttons"><nav class="segments" aria-label="${textsOf(context).range}">${names.map(link)}</nav></div>`
}

export const overviewBody = (context: ConsoleContext, state: OverviewState): Html => {
  const { range, plots, history, events } = state
  const texts = textsOf(context)
  const { root, say, can } = context
  const shown = plots.filter(({ scope }) => scope === undefined || can(scope))
  const foot = html`<div class="table-foot"><a class="button compact" href="${root}console/events">${texts.more}</a></div>`
  return html`<div class="page-head stacks">
<div><h1>${texts.overview}</h1></div>
${history !== null && rangesOf(context, range)}
</div>
<div id="rows" class="stack-wide"${
    events !== null &&
    html` data-live="${root}console/events/live" data-pace="5000" data-following="${texts.live}" data-pause="${texts.pause}" data-follow="${texts.follow}"`
  }>
${history !== null && can(USERS_SCOPE) && numbersOf(context, history)}
${history !== null && html`<div class="plots">${shown.map(plot => plotOf(context, plot, history))}</div>`}
${
  events !== null &&
  events.response.status < 400 &&
  html`<h2>${say(events.section.title)}</h2>
${tableOf(context, events.section, { path: '', rows: events.response.body.results, names: events.names, foot })}`
}
</div>`
}
