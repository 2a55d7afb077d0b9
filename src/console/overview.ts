/** The first page of the console. */
import {
  type ApiResponse,
  type ConsoleContext,
  type ConsoleSection,
  type Html,
  html,
} from '../pages/feature-pages.ts'
import { EVENT_COLUMNS } from './console-pages.ts'
import { tableOf, textsOf } from './render.ts'

export const LATEST_EVENTS: ConsoleSection = {
  name: 'events',
  title: { en: 'Latest events', de: 'Neueste Ereignisse' },
  scope: 'events:read',
  api: '/admin/events?limit=10',
  columns: EVENT_COLUMNS,
  empty: { en: 'There is no event.', de: 'Es gibt kein Ereignis.' },
}

export interface OverviewState {
  /** `null` for a key that may not read them. */
  readonly events: ApiResponse | null
}

export const overviewBody = (context: ConsoleContext, { events }: OverviewState): Html => {
  const texts = textsOf(context)
  return html`<h1>${texts.overview}</h1>
${
  events !== null &&
  events.status < 400 &&
  html`<section>
<h2>${context.say(LATEST_EVENTS.title)}</h2>
${tableOf(context, LATEST_EVENTS, '', events.body.results)}
<p><a href="${context.root}console/events">${texts.more}</a></p>
</section>`
}`
}
