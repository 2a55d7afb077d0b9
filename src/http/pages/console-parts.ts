/**
 * What a feature adds to the console (docs/console.md): pages, sections of the page of a user, and actions. They are declarations. The
 * console renders them, asks for confirmation, and calls the API with the admin key of its session, whose scopes decide.
 */
import type { ApiCall } from './api-calls.ts'
import { type Html, type HtmlValue, html } from './html.ts'
import type { IconName } from './icons.ts'
import { type PageContext, time } from './layout.ts'

export type { HtmlValue } from './html.ts'
export { type IconName, icon } from './icons.ts'

/** A text in English and German. In other languages of the pages, the console is English. */
export type Text = Readonly<Record<'en' | 'de', string>>

/** A response of the API, or one of its `results`. */
// biome-ignore lint/suspicious/noExplicitAny: as in `ApiResponse`
export type Item = any

export interface ConsoleContext extends PageContext {
  /** A text in the language of the page. */
  readonly say: (text: Text) => string
  /** Whether the admin key has a scope. */
  readonly can: (scope: string) => boolean
  /** A value of the API in the words of people, see `ConsoleParts.words`; itself if nothing has a word for it. */
  readonly word: (value: string) => string
}

/** A column of a table, or a line about an item. */
export interface ConsoleField {
  readonly label: Text
  /** Text is escaped, and isolated from its surroundings. What is `null` or empty is shown as a dash. */
  readonly value: (item: Item, context: ConsoleContext) => Html | string | number | boolean | null
  /** As a column: when it leaves a table that becomes narrow. `wide` is the first to go, `low` the last. Default: it stays. */
  readonly room?: 'wide' | 'mid' | 'low'
  /** As a column of a list with `sortedBy`: the value of the API's parameter `sort` that orders by it; `-` before it reverses the order. */
  readonly sort?: string
}

/** A field with a property as text. */
export const textField = (label: Text, name: string): ConsoleField => ({ label, value: item => item[name] })

/** A field with a property that is an identifier. */
export const codeField = (label: Text, name: string): ConsoleField => ({
  label,
  value: item => item[name] && html`<code>${item[name]}</code>`,
})

/** A field with a property that is an ISO 8601 time, or `null`. */
export const timeField = (label: Text, name: string): ConsoleField => ({
  label,
  value: (item, context) => item[name] && time(context, item[name]),
})

/** Seconds of the units of relative times, and how many of one are said before the next. */
const UNITS = [
  ['minute', 60, 60],
  ['hour', 3_600, 24],
  ['day', 86_400, 30],
] as const

/** Formats of relative times and of days by language, which are slow to create. */
const agoFormats = new Map<string, readonly [ago: Intl.RelativeTimeFormat, day: Intl.DateTimeFormat]>()

const agoFormatsOf = (language: string) => {
  const formats =
    agoFormats.get(language) ??
    ([
      new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' }),
      new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeZone: 'UTC' }),
    ] as const)
  agoFormats.set(language, formats)
  return formats
}

/** A time in the words of people, such as "3 min ago", with the exact one in UTC as its title. @param at ISO 8601 */
export const ago = ({ language }: PageContext, at: string): Html => {
  const seconds = Math.max(0, (Date.now() - Date.parse(at)) / 1_000)
  const [format, day] = agoFormatsOf(language)
  const unit = UNITS.find(([, length, most]) => seconds < length * most)
  const text =
    unit === undefined ? day.format(new Date(at)) : format.format(-Math.floor(seconds / unit[1]), unit[0])
  return html`<time datetime="${at}" title="${at.slice(0, 19).replace('T', ' ')} UTC">${text}</time>`
}

/** A field with a property that is an ISO 8601 time, or `null`, as {@link ago}. */
export const agoField = (label: Text, name: string): ConsoleField => ({
  label,
  value: (item, context) => item[name] && ago(context, item[name]),
})

/** A field with a property that is a list of texts. */
export const listField = (label: Text, name: string): ConsoleField => ({
  label,
  value: item => item[name].join(', '),
})

/** A field with a property that is one of the values in `ConsoleParts.words`, or a list of them. */
export const wordField = (label: Text, name: string): ConsoleField => ({
  label,
  value: (item, { word }) => item[name] && [item[name]].flat().map(word).join(', '),
})

/** Where the API has the id of what people enter, such as an e-mail. */
export interface FilterLookup {
  /** What the key needs; without it the text is taken for the id. */
  readonly scope: string
  /** The path of the API that has it; `null` for a text of another kind. */
  readonly api: (text: string) => string | null
  /** @returns `null` if there is none. */
  readonly idOf: (body: Item, text: string) => string | null
}

/** A field of a form. */
export interface ConsoleInput {
  /** The parameter of the API's query, or the name that `call` of an action gets. */
  readonly name: string
  readonly label: Text
  /**
   * Default: `text`. `lines` are a list of texts. A `json` is the text of an object. A `choice` is one of `options`, `choices` are several. A `day` becomes the first millisecond of it in UTC, as
   * ISO 8601.
   */
  readonly kind?: 'text' | 'email' | 'lines' | 'json' | 'choice' | 'choices' | 'day'
  /** The value that the API gets, with its text. */
  readonly options?: readonly (readonly [value: string, text: string | Text])[]
  readonly hint?: Text
  readonly isOptional?: true
  /** Whether it is the filter that a list shows first. One of a list. */
  readonly isSearch?: true
  /** For a filter by an id: the first that knows the text decides. Default: the text is the id. */
  readonly lookups?: readonly FilterLookup[]
  /** What the form of an action on an item begins with; of `choices` those that are chosen. */
  readonly value?: (item: Item) => string | readonly string[]
}

/** The ids in the URL of an action: of the page's item, and of the row of a section. */
export interface ActionTarget {
  readonly id: string
  readonly rowId: string
}

/** What a form was sent with: text, or a list for `choices` and `lines`. What is empty is absent. */
// biome-ignore lint/suspicious/noExplicitAny: the API validates it
export type ActionInput = Readonly<Record<string, any>>

/** Calls a route with the ids in its path: `call: calls('DELETE /admin/notes/:id')`. @param bodyOf what a form was sent with. */
export const calls =
  (
    route: `${ApiCall['method']} /${string}`,
    bodyOf?: (input: ActionInput) => object,
  ): ConsoleAction['call'] =>
  (target, input) => {
    const [method, path = ''] = route.split(' ') as [ApiCall['method'], string]
    const ids = (['id', 'rowId'] as const).filter(name => path.split('/').includes(`:${name}`))
    const params = Object.fromEntries(ids.map(name => [name, target[name]]))
    return { method, path, params, ...(bodyOf && { body: bodyOf(input) }) }
  }

/** A button that leads to a page which asks for confirmation. */
export interface ConsoleAction {
  /** The last part of its URL. */
  readonly name: string
  readonly label: Text
  readonly icon?: IconName
  /** What it does, on the page of the confirmation. */
  readonly explanation?: Text
  /** What the key needs; without it there is no button. */
  readonly scope: string
  readonly inputs?: readonly ConsoleInput[]
  readonly call: (target: ActionTarget, input: ActionInput) => ApiCall
  /** Whether it makes sense for an item. Default: always. */
  readonly isOffered?: (item: Item) => boolean
  /** Whether it takes something away. */
  readonly isDangerous?: true
  /** Whether the admin key has to be entered again. */
  readonly needsKey?: true
  /** What the response has to show once, such as a secret. */
  readonly shown?: (body: Item) => readonly (readonly [label: Text, text: string])[]
  /** Whether the response has a session of the user, which the browser gets: the next page is the user's. */
  readonly signsIn?: true
  /** What the next page says. */
  readonly done: Text
  /** The path of the page that follows, where the item is gone. Default: the page of the button. */
  readonly next?: string
}

/** Names of what rows refer to, such as the e-mails of users. */
export interface RelatedNames {
  /** What the key needs; without it there are ids in place of names. */
  readonly scope: string
  /** The path of the API that has them, with their ids; `null`: nothing to look up. */
  readonly api: (rows: readonly Item[]) => string | null
  readonly nameOf: (item: Item) => string
}

/**
 * What an event says in the audit log, with `{actor}`: who did it, and `{user}`: whom it concerns.
 *
 *     'note.added': { own: { en: '{actor} added a note', de: '{actor} hat eine Notiz hinzugefügt' }, icon: 'page' }
 */
export interface EventSentence {
  /** For events of a user's own, and those that concern nobody. */
  readonly own: Text
  /** For events that concern another user. Default: `own`. */
  readonly of?: Text
  readonly icon?: IconName
  readonly isGood?: true
  readonly isBad?: true
}

/** Rows of a list of the API. */
export interface ConsoleTable {
  /** What the key needs; without it the table is left out. */
  readonly scope: string
  /** The path of the API, with `:id` for that of the page's item; its response has `results`, and `nextCursor` if it has pages. */
  readonly api: string
  readonly columns: readonly ConsoleField[]
  /** What there is to say without rows. */
  readonly empty: Text
  /** The path below the console to which the first column leads. */
  readonly link?: (row: Item) => string | null
  /** A second line of the first column. */
  readonly also?: (row: Item, context: ConsoleContext) => HtmlValue
  /** Replaces the table. @param names of what rows refer to, by id. */
  readonly rows?: (context: ConsoleContext, rows: readonly Item[], names: ReadonlyMap<string, string>) => Html
  /** Where the names of what rows refer to are, for `rows`. */
  readonly names?: readonly RelatedNames[]
  readonly rowActions?: readonly ConsoleAction[]
}

/** A table on a page behind a tab of the page of an item. */
export interface ConsoleSection extends ConsoleTable {
  /** The last part of its URL, and a part of those of its actions. No action of the item has the same name. */
  readonly name: string
  readonly title: Text
  /** The path of a page with more of it, below the console. */
  readonly more?: (id: string) => string
}

/** A page of its own, beside the actions of a list. */
export interface ConsoleLink extends Pick<ConsoleAction, 'label' | 'icon' | 'scope'> {
  /** The last part of its URL. */
  readonly name: string
}

export interface ConsoleList extends ConsoleTable {
  /** The order without the filter `sort`, for heads of columns that change it. Default: heads are text. */
  readonly sortedBy?: string
  readonly filters?: readonly ConsoleInput[]
  readonly actions?: readonly ConsoleAction[]
  readonly links?: readonly ConsoleLink[]
  /** What can be done to several rows at once. */
  readonly bulk?: readonly ConsoleAction[]
  /** Something to say beside the title. */
  readonly summary?: (body: Item, context: ConsoleContext) => string | null
  /** Whether the first page follows the audit log, where script runs. */
  readonly isLive?: true
}

export interface ConsoleItem {
  /** What the key needs; without it there is no page. */
  readonly scope: string
  /** The path of the API, with `:id` for the item. */
  readonly api: string
  readonly title: (item: Item) => string
  /** What stands below the title: a name, and states as {@link badge}. */
  readonly subtitle?: (item: Item) => string
  readonly badges?: (item: Item, context: ConsoleContext) => readonly Html[]
  readonly fields: readonly ConsoleField[]
  /** What is known about it besides, in a column beside the fields. */
  readonly about?: readonly ConsoleField[]
  /** Each is a page behind a tab. */
  readonly sections?: readonly ConsoleSection[]
  readonly actions?: readonly ConsoleAction[]
}

/** `/console/<path>` with the list, `/console/<path>/:id` with an item; without a list, `/console/<path>` with the item. */
export interface ConsolePage {
  readonly path: string
  /** Its name in the menu, with an icon. */
  readonly title: Text
  readonly icon?: IconName
  /** The part of the menu. Default: `operation`. */
  readonly group?: 'people' | 'connections' | 'operation'
  /** What it is for, below the title. */
  readonly lead?: Text
  readonly list?: ConsoleList
  readonly item?: ConsoleItem
}

/** A plot of the overview, of a metric that is declared with `kept`. */
export interface ConsolePlot {
  readonly title: Text
  /** What the scale measures, such as "seconds". A rate is per minute. */
  readonly unit: Text
  readonly metric: string
  /** What the key needs besides `metrics:read`, where a number is more than metrics show; without it the plot is left out. */
  readonly scope?: string
  /** How counts become values: per minute; for a histogram p50 and p99 in milliseconds; a gauge as it is. */
  readonly kind: 'rate' | 'quantiles' | 'gauge'
  /**
   * The name of the curve of values with these labels: one value of `ConsoleParts.words`, or several with commas between them. Values of
   * one curve are added up. Default: one curve.
   */
  readonly curve?: (labels: Readonly<Record<string, string>>) => string
}

export interface ConsoleParts {
  /** What the audit log says, by the types of events. Default: their names. */
  readonly events?: Readonly<Record<string, EventSentence>>
  /** What errors of the API say to administrators, by their names. Default: the feature's own texts, else the API's message in English. */
  readonly errors?: Readonly<Record<string, Text>>
  /** Words for values of the API, such as those of `wordField`, and of the labels of metrics. Default: the values. */
  readonly words?: Readonly<Record<string, Text>>
  readonly plots?: readonly ConsolePlot[]
  readonly pages?: readonly ConsolePage[]
  /** Sections of the page of a user. */
  readonly userSections?: readonly ConsoleSection[]
}

/** What the core and all features declare. */
export interface ConsoleDeclarations {
  readonly eventTypes: readonly string[]
  /** What each admin scope allows. */
  readonly adminScopes: Readonly<Record<string, Text>>
  /** The values of the settings of features, by their names. */
  readonly featureSettings: Readonly<Record<string, unknown>>
}

/** The module that `console` of a feature imports. */
export interface ConsoleModule {
  readonly default: ConsoleParts | ((declared: ConsoleDeclarations) => ConsoleParts)
  /** What the admin scopes of the feature allow, in German. Default: their descriptions. */
  readonly scopes?: Readonly<Record<string, string>>
  /** What the settings of the feature do, in German. Default: their descriptions. */
  readonly settings?: Readonly<Record<string, string>>
}
