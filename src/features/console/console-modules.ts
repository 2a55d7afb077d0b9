/** The pages and plots of the console: those of the core, then those of features. */
import type { Feature } from '#feature/declaration'
import type { ConsoleDeclarations, ConsolePage, ConsolePlot, ConsoleSection } from '#http/pages/feature-pages'
import { eventsPage, latestEvents, statusPage, userEvents } from './console-pages.ts'
import { eventRows } from './event-log.ts'
import { CORE_PLOTS } from './plots.ts'

/** @param features in which the console is the last one of the core. */
export const consoleModulesOf = async (
  features: readonly Feature[],
  declared: ConsoleDeclarations,
): Promise<{
  readonly pages: readonly ConsolePage[]
  readonly plots: readonly ConsolePlot[]
  readonly latestEvents: ConsoleSection
}> => {
  const own = features.filter(({ name }) => name === 'console')
  const others = features.filter(({ name }) => name !== 'console')
  const modules = await Promise.all([...own, ...others].map(({ console: load }) => load?.()))
  const parts = modules.flatMap(module => {
    if (module === undefined) return []
    const { default: exported } = module
    return [typeof exported === 'function' ? exported(declared) : exported]
  })
  const userSections = parts.flatMap(({ userSections: sections = [] }) => sections)
  const pages = parts.flatMap(({ pages: some = [] }) => some)
  const rows = eventRows(Object.assign({}, ...parts.map(({ events }) => events)))
  const log = eventsPage(declared.eventTypes, rows)
  return {
    pages: [...pages.map(page => withSections(page, [...userSections, userEvents(rows)])), log, statusPage],
    latestEvents: latestEvents(rows),
    plots: [...CORE_PLOTS, ...parts.flatMap(({ plots = [] }) => plots)],
  }
}

/** The page of a user has the sections of features after its own. */
const withSections = (page: ConsolePage, sections: readonly ConsoleSection[]): ConsolePage =>
  page.path !== 'users' || page.item === undefined
    ? page
    : { ...page, item: { ...page.item, sections: [...(page.item.sections ?? []), ...sections] } }
