/** Shows events of the audit log as sentences, by day, each with its details on demand. */
import {
  type ConsoleContext,
  type ConsoleTable,
  type EventSentence,
  type Html,
  type HtmlValue,
  html,
  type Item,
  icon,
  type RelatedNames,
  type Text,
} from '#http/pages/feature-pages'
import { textsOf } from './frame.ts'

/** Characters of the start of an id, which a person can compare. */
const SHORT_ID = 8

const DAY_LENGTH = 10
const TIME = [11, 19] as const

const actorTexts = {
  anonymous: { en: 'Somebody', de: 'Jemand' },
  system: { en: 'The service', de: 'Der Dienst' },
  user: { en: 'User', de: 'Nutzer' },
  administrator: { en: 'Administrator', de: 'Administrator' },
  apiKey: { en: 'API key', de: 'API-Schlüssel' },
  adminKey: { en: 'Key', de: 'Schlüssel' },
  client: { en: 'Application', de: 'Anwendung' },
} as const

/** Actors that are users, whose e-mail names them. */
const isPerson = (type: string): boolean => type === 'user' || type === 'administrator'

const dayFormats = new Map<string, Intl.DateTimeFormat>()

const dayOf = (language: string, at: string): string => {
  const format =
    dayFormats.get(language) ?? new Intl.DateTimeFormat(language, { dateStyle: 'full', timeZone: 'UTC' })
  dayFormats.set(language, format)
  return format.format(new Date(at))
}

/** The names of users and keys in events, from the API. */
export const EVENT_NAMES: readonly RelatedNames[] = [
  {
    scope: 'users:read',
    api: events => {
      const ids = new Set(
        events.flatMap(({ userId, actor }: Item) => [userId, isPerson(actor.type) ? actor.id : null]),
      )
      ids.delete(null)
      return ids.size === 0 ? null : `/admin/users?ids=${[...ids].join(',')}`
    },
    nameOf: ({ email }) => email,
  },
  {
    scope: 'keys:write',
    api: events => (events.some(({ actor }: Item) => actor.type === 'adminKey') ? '/admin/keys' : null),
    nameOf: ({ name }) => name,
  },
  {
    scope: 'clients:read',
    // Tokens of clients act as keys where they are sent as keys.
    api: events =>
      events.some(({ actor }: Item) => actor.type === 'client' || actor.type === 'adminKey')
        ? '/admin/clients?limit=100'
        : null,
    nameOf: ({ name }) => name,
  },
]

type Names = ReadonlyMap<string, string>

const named = (id: string, names: Names): Html => {
  const name = names.get(id)
  return name === undefined
    ? html`<code>${id.slice(0, SHORT_ID)}…</code>`
    : html`<strong><bdi>${name}</bdi></strong>`
}

const actorOf = ({ say }: ConsoleContext, { actor }: Item, names: Names): Html => {
  const kind = say(actorTexts[actor.type as keyof typeof actorTexts] ?? actorTexts.anonymous)
  if (actor.id === null) return html`${kind}`
  return isPerson(actor.type) && names.has(actor.id)
    ? named(actor.id, names)
    : html`${kind} ${named(actor.id, names)}`
}

/** Puts HTML into the places of a text. */
const filledIn = (text: string, values: Readonly<Record<string, Html>>): readonly HtmlValue[] =>
  text.split(/(\{\w+\})/).map(part => (part.startsWith('{') ? (values[part.slice(1, -1)] ?? part) : part))

const sentenceOf = (
  context: ConsoleContext,
  event: Item,
  names: Names,
  sentence: EventSentence | undefined,
): HtmlValue => {
  const { actor, userId, type } = event
  const values = {
    actor: actorOf(context, event, names),
    user: userId === null ? html`–` : named(userId, names),
  }
  if (sentence === undefined) return html`${values.actor}: <code>${type}</code>`
  const isOwn = userId === null || (actor.type === 'user' && actor.id === userId)
  const text = isOwn ? sentence.own : (sentence.of ?? sentence.own)
  return filledIn(context.say(text), values)
}

const factsOf = (context: ConsoleContext, event: Item, names: Names): Html => {
  const { id, type, actor, userId, ip, details } = event
  const { root, say, can } = context
  const texts = textsOf(context)
  const fact = (label: string, value: HtmlValue): Html | false =>
    value !== null && html`<div><dt>${label}</dt><dd>${value}</dd></div>`
  const user = (userId: string): Html =>
    can('users:read')
      ? html`<a href="${root}console/users/${userId}">${names.has(userId) ? named(userId, names) : html`<code>${userId}</code>`}</a>`
      : html`<code>${userId}</code>`
  const eventsOf = (filter: 'actorId' | 'ip', value: string, text: HtmlValue): Html =>
    html`<a href="${root}console/events?${filter}=${encodeURIComponent(value)}">${text}</a>`
  return html`<dl class="facts">${fact(texts.event, html`<code>${type}</code>`)}${fact(
    texts.user,
    userId === null ? null : user(userId),
  )}${fact(
    texts.by,
    actor.id === null
      ? null
      : html`${say(actorTexts[actor.type as keyof typeof actorTexts] ?? actorTexts.anonymous)} ${eventsOf('actorId', actor.id, named(actor.id, names))}`,
  )}${fact(texts.address, ip === null ? null : eventsOf('ip', ip, ip))}${fact(
    texts.details,
    details === null ? null : html`<pre>${JSON.stringify(details, null, 1)}</pre>`,
  )}${fact(texts.id, html`<code>${id}</code>`)}</dl>`
}

/**
 * Types of events with what they say, without who did it.
 * @param sentences by the types of events.
 */
export const eventNames = (
  types: readonly string[],
  sentences: Readonly<Record<string, EventSentence>>,
): readonly (readonly [type: string, name: Text])[] => {
  const nameOf = (type: string, language: keyof Text): string =>
    sentences[type]?.own[language].replace(/^\{actor\} /, '') ?? type
  const languages = ['en', 'de'] as const
  const isShared = (type: string): boolean =>
    types.some(other => other !== type && languages.some(each => nameOf(other, each) === nameOf(type, each)))
  const named = (type: string, language: keyof Text): string =>
    isShared(type) ? `${nameOf(type, language)} (${type})` : nameOf(type, language)
  return types.toSorted().map(type => [type, { en: named(type, 'en'), de: named(type, 'de') }])
}

/** @param sentences by the types of events. */
export const eventRows =
  (sentences: Readonly<Record<string, EventSentence>>): NonNullable<ConsoleTable['rows']> =>
  (context, events, names) => {
    const line = (event: Item): Html => {
      const { at, type, ip } = event
      const sentence = sentences[type]
      const state = sentence?.isBad ? 'bad' : sentence?.isGood ? 'good' : undefined
      return html`<li><details name="event"><summary><time datetime="${at}" title="${at.slice(0, TIME[1]).replace('T', ' ')} UTC">${at.slice(
        ...TIME,
      )}</time>${icon(sentence?.icon ?? 'log', state)}<span class="what">${sentenceOf(context, event, names, sentence)}</span><span class="from">${ip}</span><span class="chevron"></span></summary>
${factsOf(context, event, names)}</details></li>
`
    }
    const days = new Map<string, Item[]>()
    for (const event of events) {
      const day = event.at.slice(0, DAY_LENGTH)
      days.set(day, [...(days.get(day) ?? []), event])
    }
    return html`${[...days.values()].map(
      each => html`<h2>${dayOf(context.language, each[0].at)} (UTC)</h2>
<ol>${each.map(line)}</ol>
`,
    )}`
  }
