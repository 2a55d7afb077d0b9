/** The pages and plots of the console: those of the core, then those of features. */
import { ERRORS } from '#base/errors'
import { canBeTried, type MailKind } from '#core/mail/kinds'
import type { Feature } from '#feature/declaration'
import { mailKindsOf } from '#feature/texts'
import type {
  ConsoleDeclarations,
  ConsolePage,
  ConsolePlot,
  ConsoleSection,
  Text,
} from '#http/pages/feature-pages'
import { type ErrorTexts, errorTextsOf } from '#http/pages/messages'
import { eventsPage, latestEvents, settingsPage, statusPage, userEvents } from './console-pages.ts'
import { eventNames, eventRows } from './event-log.ts'
import { CORE_PLOTS } from './plots.ts'
import { CORE_SETTINGS } from './setting-words.ts'
import { CORE_ERRORS, CORE_SCOPES, CORE_WORDS } from './words.ts'

export interface ConsoleModules {
  readonly pages: readonly ConsolePage[]
  readonly plots: readonly ConsolePlot[]
  readonly latestEvents: ConsoleSection
  /** Words for values of the API. */
  readonly words: Readonly<Record<string, Text>>
  /** Errors in the words for administrators. */
  readonly errorTexts: Readonly<Record<keyof Text, ErrorTexts>>
}

interface Declared extends Pick<ConsoleDeclarations, 'eventTypes' | 'featureSettings'> {
  readonly adminScopes: Readonly<Record<string, string>>
}

/** The kinds of mails that can be tried, with their subjects. */
const triedMails = (features: readonly Feature[]): [string, Text][] =>
  Object.entries<MailKind>(mailKindsOf(features)).flatMap(([name, kind]) =>
    canBeTried(kind) ? [[name, { en: kind.en.subject, de: (kind.de ?? kind.en).subject }]] : [],
  )

/** @param features in which the console is the last one of the core. */
export const consoleModulesOf = async (
  features: readonly Feature[],
  { eventTypes, adminScopes: described, featureSettings }: Declared,
): Promise<ConsoleModules> => {
  const own = features.filter(({ name }) => name === 'console')
  const others = features.filter(({ name }) => name !== 'console')
  const modules = await Promise.all([...own, ...others].map(({ console: load }) => load?.()))
  const scopes: Readonly<Record<string, string>> = Object.assign(
    {},
    CORE_SCOPES,
    ...modules.map(module => module?.scopes),
  )
  const settings: Readonly<Record<string, string>> = Object.assign(
    {},
    CORE_SETTINGS,
    ...modules.map(module => module?.settings),
  )
  const adminScopes = Object.fromEntries(
    Object.entries(described).map(([scope, en]) => [scope, { en, de: scopes[scope] ?? en }]),
  )
  const declared = { eventTypes, adminScopes, featureSettings }
  const parts = modules.flatMap(module => {
    if (module === undefined) return []
    const { default: exported } = module
    return [typeof exported === 'function' ? exported(declared) : exported]
  })
  const userSections = parts.flatMap(({ userSections: sections = [] }) => sections)
  const pages = parts.flatMap(({ pages: some = [] }) => some)
  const sentences = Object.assign({}, ...parts.map(({ events }) => events))
  const rows = eventRows(sentences)
  const log = eventsPage(eventNames(eventTypes, sentences), rows)
  const errors: Readonly<Record<string, Text>> = Object.assign(
    {},
    CORE_ERRORS,
    ...parts.map(part => part.errors),
  )
  const definitions = Object.assign({}, ERRORS, ...features.map(feature => feature.errors))
  const errorTextsIn = (language: keyof Text): ErrorTexts =>
    errorTextsOf(
      definitions,
      Object.fromEntries(Object.entries(errors).map(([name, text]) => [name, text[language]])),
    )
  return {
    words: Object.assign({}, CORE_WORDS, ...parts.map(part => part.words)),
    errorTexts: { en: errorTextsIn('en'), de: errorTextsIn('de') },
    pages: [
      ...pages.map(page => withSections(page, [...userSections, userEvents(rows)])),
      log,
      statusPage,
      settingsPage(settings, triedMails(features)),
    ],
    latestEvents: latestEvents(rows),
    plots: [...CORE_PLOTS, ...parts.flatMap(({ plots = [] }) => plots)],
  }
}

/** The page of a user has the sections of features after its own. */
const withSections = (page: ConsolePage, sections: readonly ConsoleSection[]): ConsolePage =>
  page.path !== 'users' || page.item === undefined
    ? page
    : { ...page, item: { ...page.item, sections: [...(page.item.sections ?? []), ...sections] } }
