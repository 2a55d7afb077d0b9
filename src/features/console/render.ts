/** Renders what `ConsoleParts` declare: lists, items, tables, forms. Every value is escaped by `html`. */
import type { FieldErrors } from '#base/errors'
import {
  type ApiResponse,
  type ConsoleAction,
  type ConsoleContext,
  type ConsoleField,
  type ConsoleInput,
  type ConsoleItem,
  type ConsoleLink,
  type ConsoleList,
  type ConsolePage,
  type ConsoleSection,
  type ConsoleTable,
  Form,
  Html,
  hiddenField,
  html,
  type IconName,
  type Item,
  icon,
  NO_ERRORS,
  type Text,
  usernameField,
} from '#http/pages/feature-pages'
import { initials, textsOf } from './frame.ts'

/** Characters of a value in a table. The page of the item has all of them. */
const CELL_LENGTH = 200

/** What a form was sent with, and the query of a list. */
export type Values = Readonly<Record<string, string>>

/** Text of the service: `bdi` keeps its direction from the text around it. */
const shownValue = (context: ConsoleContext, { value }: ConsoleField, item: Item, length: number): Html => {
  const texts = textsOf(context)
  const shown = value(item, context)
  if (shown instanceof Html) return shown
  if (shown === null || shown === '') return html`<span class="muted">${texts.none}</span>`
  if (typeof shown === 'boolean') return html`${shown ? texts.yes : texts.no}`
  const text = String(shown)
  return html`<bdi>${text.length > length ? `${text.slice(0, length)}…` : text}</bdi>`
}

/** @returns the query of a URL with the given values; empty without any. */
const queryOf = (values: Readonly<Record<string, string | undefined>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, value)
  return query.size === 0 ? '' : `?${query}`
}

/** What has a button that leads to a page. */
type Offer = ConsoleLink & Pick<ConsoleAction, 'isOffered' | 'isDangerous'>

/** Whether there is a button for an action. */
const isShown = ({ can }: ConsoleContext, { scope, isOffered }: Offer, item: Item): boolean =>
  can(scope) && (isOffered?.(item) ?? true)

/** The button of an action in a row of a table. @param of what it is done to, for screen readers. */
const rowButton = (
  { root, say }: ConsoleContext,
  { label, name, isDangerous }: ConsoleAction,
  path: string,
  of: string,
  cursor: string | undefined,
): Html =>
  html`<a class="button compact${isDangerous && ' danger'}" href="${root}console/${path}/${name}${queryOf({ cursor })}">${say(label)}<span class="visually-hidden">: ${of}</span></a>`

/** The first action as a button, the others in a menu, dangerous ones last. */
const buttonsOf = (
  context: ConsoleContext,
  actions: readonly Offer[] = [],
  path: string,
  item: Item,
): Html | false => {
  const { root, say } = context
  const shown = actions.filter(action => isShown(context, action, item))
  const [first, ...others] = [
    ...shown.filter(({ isDangerous }) => !isDangerous),
    ...shown.filter(({ isDangerous }) => isDangerous),
  ]
  if (first === undefined) return false
  const href = ({ name }: Offer): string => `${root}console/${path}/${name}`
  const entry = (action: Offer, index: number): Html => {
    const isFirstDangerous = action.isDangerous && !others[index - 1]?.isDangerous && index > 0
    return html`<li${isFirstDangerous && html` class="rule"`}><a href="${href(action)}"${action.isDangerous && html` class="danger"`}>${
      action.icon !== undefined && icon(action.icon)
    }${say(action.label)}</a></li>`
  }
  return html`<div class="buttons"><a class="button ${first.isDangerous ? 'danger' : 'primary'}" href="${href(first)}">${
    first.icon !== undefined && icon(first.icon)
  }${say(first.label)}</a>${
    others.length > 0 &&
    html`<button type="button" class="square" popovertarget="more" aria-label="${textsOf(context).moreActions}">${icon('more')}</button>
<div class="menu" id="more" popover><ul>${others.map(entry)}</ul></div>`
  }</div>`
}

type Crumb = readonly [path: string | null, text: string]

/** The way to a page: links to those above it, and its own name. */
export const crumbsOf = (context: ConsoleContext, crumbs: readonly Crumb[]): Html =>
  html`<nav aria-label="${textsOf(context).path}"><ol class="crumbs">${crumbs.map(([path, text]) =>
    path === null
      ? html`<li><span aria-current="page"><bdi>${text}</bdi></span></li>`
      : html`<li><a href="${context.root}console/${path}"><bdi>${text}</bdi></a></li>`,
  )}</ol></nav>`

/** The path of a row of a table on the page of an item or a list, below the console. */
const rowPath = (path: string, { id }: Item): string => `${path}/${encodeURIComponent(id)}`

/** The order of a list. */
interface Sorting {
  /** The path of the page, below the console. */
  readonly path: string
  readonly sortedBy: string
  /** The parameters of the page. */
  readonly values: Values
}

interface TableState {
  /** The path of the page with the table, below the console. */
  readonly path: string
  readonly rows: readonly Item[]
  /** Of what the rows refer to, by id. */
  readonly names: ReadonlyMap<string, string>
  /** Of the page that has these rows, for their actions. */
  readonly cursor?: string | undefined
  /** What can be done to several rows. */
  readonly bulk?: readonly ConsoleAction[]
  /** What is below the rows. */
  readonly foot?: Html | false
  /** What an empty table offers, with an icon. */
  readonly offer?: Html | false
  readonly emptyIcon?: IconName
  /** `null`: there is only one. */
  readonly sorting?: Sorting | null
}

/** The name of a row for screen readers. */
const nameOf = ({ name, email, url, id }: Item): string => String(name ?? email ?? url ?? id)

const REVERSE = /^-/

/** The head of a column that orders the list: a link to the other order, or to its own. */
const sortHead = (
  { say, root }: ConsoleContext,
  { label, room, sort = '' }: ConsoleField,
  { path, sortedBy, values: { cursor: _, sort: __, ...others } }: Sorting,
): Html => {
  const isSorted = sortedBy.replace(REVERSE, '') === sort
  const next = sortedBy === sort ? `-${sort}` : sort
  const order = isSorted && html` aria-sort="${REVERSE.test(sortedBy) ? 'descending' : 'ascending'}"`
  return html`<th scope="col"${room !== undefined && html` class="${room}"`}${order}><a href="${root}console/${path}${queryOf({ ...others, sort: next })}">${say(label)}${icon(isSorted ? (REVERSE.test(sortedBy) ? 'descending' : 'ascending') : 'updown')}</a></th>`
}

const headOf = (
  context: ConsoleContext,
  columns: readonly ConsoleField[],
  hasActions: boolean,
  isPicked: boolean,
  sorting: Sorting | null,
): Html =>
  html`<tr>${
    isPicked &&
    html`<th scope="col" class="pick"><label><input type="checkbox" data-script="check-all" aria-label="${textsOf(context).selectAll}"></label></th>`
  }${columns.map(column =>
    column.sort !== undefined && sorting !== null
      ? sortHead(context, column, sorting)
      : html`<th scope="col"${column.room !== undefined && html` class="${column.room}"`}>${context.say(column.label)}</th>`,
  )}${hasActions && html`<th scope="col" class="end"><span class="visually-hidden">${textsOf(context).actions}</span></th>`}</tr>`

export const tableOf = (
  context: ConsoleContext,
  table: ConsoleTable,
  {
    path,
    rows,
    names,
    cursor,
    bulk = [],
    foot = false,
    offer = false,
    emptyIcon = 'page',
    sorting = null,
  }: TableState,
): Html => {
  const { root, say } = context
  const texts = textsOf(context)
  const { columns, link, also, rowActions = [] } = table
  if (rows.length === 0)
    return html`<section class="card empty"><span class="emblem">${icon(emptyIcon)}</span><h2>${say(table.empty)}</h2>${offer}</section>${foot}`
  if (table.rows !== undefined)
    return html`<section class="card log">${table.rows(context, rows, names)}${foot}</section>`
  const actions = rowActions.filter(({ scope }) => context.can(scope))
  const cell = (row: Item, column: ConsoleField, index: number): Html => {
    const value = shownValue(context, column, row, CELL_LENGTH)
    if (index > 0) return html`<td${column.room !== undefined && html` class="${column.room}"`}>${value}</td>`
    const target = link?.(row) ?? null
    return html`<td class="main">${
      target === null
        ? html`<strong>${value}</strong>`
        : html`<a href="${root}console/${target}">${value}</a>`
    }${also !== undefined && html`<span class="also">${also(row, context)}</span>`}</td>`
  }
  const pick = (row: Item): Html =>
    html`<td class="pick"><label><input type="checkbox" name="id:${row.id}" aria-label="${texts.select}: ${nameOf(row)}"></label></td>`
  const line = (row: Item): Html =>
    html`<tr>${bulk.length > 0 && pick(row)}${columns.map((column, index) => cell(row, column, index))}${
      actions.length > 0 &&
      html`<td class="end">${actions
        .filter(action => isShown(context, action, row))
        .map(action => rowButton(context, action, rowPath(path, row), nameOf(row), cursor))}</td>`
    }</tr>\n`
  const content = html`<table>
<thead>${headOf(context, columns, actions.length > 0, bulk.length > 0, sorting)}</thead>
<tbody>
${rows.map(line)}</tbody>
</table>
${bulk.length > 0 && bulkBar(context, path, bulk)}${foot}`
  return bulk.length > 0
    ? html`<form class="card table selectable" method="get">${content}</form>`
    : html`<div class="card table">${content}</div>`
}

/** Buttons for the selected rows, which appear with the first. */
const bulkBar = (
  { root, say, ...context }: ConsoleContext,
  path: string,
  bulk: readonly ConsoleAction[],
): Html =>
  html`<div class="bulk"><p>${textsOf(context).selected}</p>${bulk.map(
    ({ name, label, isDangerous }) =>
      html`<button formaction="${root}console/${path}/bulk/${name}"${isDangerous && html` class="danger"`}>${say(label)}</button>`,
  )}</div>`

const inputOf = (
  context: ConsoleContext,
  form: Form,
  input: ConsoleInput,
  values: Values,
  isFilter = false,
): Html => {
  const { say } = context
  const { name, kind = 'text', hint, isOptional } = input
  const label = say(input.label)
  const options = (input.options ?? []).map(
    ([value, text]) => [value, typeof text === 'string' ? text : say(text)] as const,
  )
  if (kind === 'choice') return form.choice({ name, label, options, value: values[name] })
  if (kind === 'choices')
    return form.group(name, label, [
      html`<div class="checks">${options.map(([value, text]) =>
        form.check({
          name: `${name}:${value}`,
          isChecked: `${name}:${value}` in values,
          label: html`<span><code>${value}</code>${text !== value && html` <span class="hint">${text}</span>`}</span>`,
        }),
      )}</div>`,
    ])
  return form.field({
    name,
    label,
    type: kind === 'day' ? 'date' : kind === 'email' ? kind : 'text',
    ...((kind === 'json' || kind === 'lines') && { isLong: true }),
    autocomplete: 'off',
    value: values[name] ?? '',
    isFilter,
    ...(hint !== undefined && { hint: say(hint) }),
    ...(isOptional === true && { isOptional }),
  })
}

const noticeOf = (notice: string | null): Html | false =>
  notice !== null &&
  html`<p class="notice good" role="status" tabindex="-1" autofocus>${icon('check')}<span>${notice}</span></p>`

export interface ListState {
  readonly page: ConsolePage
  readonly list: ConsoleList
  readonly values: Values
  readonly response: ApiResponse
  readonly names: ReadonlyMap<string, string>
  /** The URL of the stream for a list that is live, below the console. */
  readonly live: string
  readonly notice: string | null
}

/** A choice of a filter can be left open. Beside the search its label is not seen, so the open choice names it. */
const withAny = (context: ConsoleContext, filter: ConsoleInput): ConsoleInput => {
  const { label, options } = filter
  if (options === undefined || options.some(([value]) => value === '')) return filter
  const any = `${context.say(label)}: ${textsOf(context).any}`
  return { ...filter, options: [['', any] as const, ...options] }
}

const searchField = (context: ConsoleContext, { name, label, hint }: ConsoleInput, values: Values): Html =>
  html`<div class="search">${icon('search')}<input type="search" id="filter-${name}" name="${name}" aria-label="${context.say(label)}" placeholder="${context.say(hint ?? label)}" value="${values[name] ?? ''}"></div>`

const toolbar = (context: ConsoleContext, form: Form, { page, list, values }: ListState): Html | false => {
  const texts = textsOf(context)
  const { filters } = list
  if (filters === undefined) return false
  const search = filters.find(({ isSearch }) => isSearch)
  const others = filters.filter(filter => filter !== search)
  const fields = others.map(filter => inputOf(context, form, withAny(context, filter), values, true))
  return html`<form class="toolbar" method="get" action="${context.root}console/${page.path}" role="search">
${search !== undefined && searchField(context, search, values)}
<button type="button" popovertarget="filters">${icon('filter')}${texts.filter}</button>
<div class="filters" id="filters" popover>
<h2>${texts.filter}</h2>
${fields}
<button>${texts.filterButton}</button>
</div>
</form>
`
}

/** The filters that are set, each as a link to the list without it. */
const chipsOf = (context: ConsoleContext, { page, list, values }: ListState): Html | false => {
  const { root, say } = context
  const texts = textsOf(context)
  const action = `${root}console/${page.path}`
  const set = (list.filters ?? []).filter(({ name }) => values[name])
  if (set.length === 0) return false
  const chip = ({ name, label, options = [] }: ConsoleInput): Html => {
    const { [name]: value = '', cursor: _, ...others } = values
    const text = options.find(([each]) => each === value)?.[1] ?? value
    return html`<a class="chip" href="${action}${queryOf(others)}"><span><span class="visually-hidden">${texts.without} </span>${say(label)}: <bdi>${
      typeof text === 'string' ? text : say(text)
    }</bdi></span>${icon('close')}</a>
`
  }
  return html`<div class="chips">${set.map(chip)}<a href="${action}">${texts.reset}</a></div>
`
}

interface PagerState {
  /** Below the console. */
  readonly path: string
  readonly title: Text
  readonly values: Values
}

/** Links to other pages of a table. */
const pager = (
  context: ConsoleContext,
  { path, title, values }: PagerState,
  nextCursor: string | null,
): Html | false => {
  const { root, say } = context
  const texts = textsOf(context)
  const { cursor, ...others } = values
  const href = (more: Values): string => `${root}console/${path}${queryOf({ ...others, ...more })}`
  if (cursor === undefined && nextCursor === null) return false
  return html`<nav class="table-foot" aria-label="${say(title)}"><span>${
    cursor !== undefined && html`<a class="button compact" href="${href({})}">${texts.firstPage}</a>`
  }</span>${
    nextCursor !== null &&
    html`<a class="button compact" href="${href({ cursor: nextCursor })}" rel="next">${texts.nextPage}</a>`
  }</nav>`
}

export const listBody = (context: ConsoleContext, state: ListState): Html => {
  const { page, list, values, response, live, notice } = state
  const { say } = context
  const texts = textsOf(context)
  const form = new Form(context, response.errors, 'filter-')
  const filters = toolbar(context, form, state)
  const { results = [], nextCursor = null } = response.body ?? {}
  const summary = form.hasErrors ? null : (list.summary?.(response.body, context) ?? null)
  const isLive = list.isLive === true && values.cursor === undefined && !form.hasErrors
  const isFiltered = (list.filters ?? []).some(({ name }) => values[name])
  const table = (): Html =>
    tableOf(context, list, {
      path: page.path,
      rows: results,
      names: state.names,
      cursor: values.cursor,
      sorting:
        list.sortedBy === undefined
          ? null
          : { path: page.path, sortedBy: values.sort ?? list.sortedBy, values },
      bulk: (list.bulk ?? []).filter(({ scope }) => context.can(scope)),
      foot: pager(context, { path: page.path, title: page.title, values }, nextCursor),
      ...(isFiltered
        ? {
            offer: html`<div class="buttons"><a class="button" href="${context.root}console/${page.path}">${texts.showAll}</a></div>`,
            emptyIcon: 'search',
          }
        : {
            offer: buttonsOf(context, list.actions?.slice(0, 1), page.path, null),
            emptyIcon: page.icon ?? 'page',
          }),
    })
  return html`<div class="page-head">
<div><h1>${say(page.title)}${summary !== null && html` <small>${summary}</small>`}</h1>${page.lead !== undefined && html`<p class="lead">${say(page.lead)}</p>`}</div>
${buttonsOf(context, [...(list.actions ?? []), ...(list.links ?? [])], page.path, null)}
</div>
${noticeOf(notice)}${form.summary()}
${filters}${chipsOf(context, state)}${
  !form.hasErrors &&
  html`<div id="rows"${
    isLive &&
    html` data-live="${context.root}console/${live}" data-following="${texts.live}" data-pause="${texts.pause}" data-follow="${texts.follow}"`
  }>
${table()}
</div>`
}`
}

export interface ItemState {
  readonly page: ConsolePage
  readonly item: ConsoleItem
  readonly body: Item
  /** The path of the item below the console. */
  readonly path: string
  /** The sections that may be seen. */
  readonly sections: readonly ConsoleSection[]
  /** The section of the page with its rows; `null`: the page has the fields. */
  readonly shown: {
    readonly section: ConsoleSection
    readonly response: ApiResponse
    readonly names: ReadonlyMap<string, string>
  } | null
  readonly cursor: string | undefined
  readonly notice: string | null
}

/** The lines about an item. @param length of values, in characters. */
const factsOf = (
  context: ConsoleContext,
  fields: readonly ConsoleField[],
  item: Item,
  length: number,
  isNarrow = false,
): Html =>
  html`<dl class="facts${isNarrow && ' narrow'}">${fields.map(
    field =>
      html`<div><dt>${context.say(field.label)}</dt><dd>${shownValue(context, field, item, length)}</dd></div>`,
  )}</dl>`

const tabsOf = (context: ConsoleContext, { path, sections, shown }: ItemState): Html | false => {
  const { root, say } = context
  const texts = textsOf(context)
  const tab = (target: string, text: string, isCurrent: boolean): Html =>
    html`<li><a href="${root}console/${target}"${isCurrent && html` aria-current="page"`}>${text}</a></li>`
  return (
    sections.length > 0 &&
    html`<nav class="tabs" aria-label="${texts.parts}"><ul>${tab(path, texts.profile, shown === null)}${sections.map(
      section => tab(`${path}/${section.name}`, say(section.title), section === shown?.section),
    )}</ul></nav>
`
  )
}

const identityOf = (context: ConsoleContext, { item, body }: ItemState): Html => {
  const subtitle = item.subtitle?.(body) ?? ''
  const badges = item.badges?.(body, context) ?? []
  const title = html`<h1 class="break"><bdi>${item.title(body)}</bdi></h1>`
  if (item.badges === undefined) return html`<div>${title}</div>`
  return html`<div class="identity"><span class="avatar large" aria-hidden="true">${initials(subtitle || item.title(body))}</span><div>${title}${
    subtitle !== '' && html`<p class="break"><bdi>${subtitle}</bdi></p>`
  }<p class="badges">${badges}</p></div></div>`
}

const sectionOf = (context: ConsoleContext, state: ItemState): Html | null => {
  const { shown, path, cursor, body } = state
  if (shown === null) return null
  const { section, response, names } = shown
  const { more, name, title } = section
  if (response.status >= 400) return new Form(context, response.errors, name).summary()
  const { results, nextCursor = null } = response.body
  const values = cursor === undefined ? {} : { cursor }
  const foot =
    more === undefined
      ? pager(context, { path: `${path}/${name}`, title, values }, nextCursor)
      : html`<div class="table-foot"><a class="button compact" href="${context.root}console/${more(body.id)}">${textsOf(context).more}</a></div>`
  return tableOf(context, section, { path: `${path}/${name}`, rows: results, names, cursor, foot })
}

export const itemBody = (context: ConsoleContext, state: ItemState): Html => {
  const { page, item, body, path, notice } = state
  const { say } = context
  const texts = textsOf(context)
  const unlimited = Number.POSITIVE_INFINITY
  const facts = (): Html => {
    const title = page.list === undefined ? texts.about : texts.profile
    const main = html`<section class="card"><div class="card-head"><h2>${title}</h2></div>
${factsOf(context, item.fields, body, unlimited)}</section>`
    return item.about === undefined
      ? main
      : html`<div class="columns"><div>
${main}
</div><div>
<section class="card"><div class="card-head"><h2>${texts.about}</h2></div>
${factsOf(context, item.about, body, unlimited, true)}</section>
</div></div>`
  }
  return html`<div class="page-head stacks">
${
  page.list !== undefined &&
  crumbsOf(context, [
    [page.path, say(page.title)],
    [null, item.title(body)],
  ])
}
${identityOf(context, state)}
${buttonsOf(context, item.actions, path, body)}
</div>
${tabsOf(context, state)}${noticeOf(notice)}${sectionOf(context, state) ?? facts()}`
}

export interface ConfirmState {
  readonly action: ConsoleAction
  /** The path of the form below the console, and that of the page behind "Cancel". */
  readonly path: string
  readonly back: string
  /** What it is done to, with the lines that say what this is. */
  readonly item: Item
  readonly fields: readonly ConsoleField[]
  readonly title: string | null
  readonly page: ConsolePage
  readonly values: Values
  /** The ids of the rows that were selected for it. */
  readonly ids?: readonly string[]
  /** What the administrator enters, where the action needs it. */
  readonly proof: 'key' | 'code' | 'none' | 'signIn'
  readonly errors?: FieldErrors
}

export const proofField = (
  context: ConsoleContext,
  form: Form,
  proof: ConfirmState['proof'],
): Html | false => {
  const texts = textsOf(context)
  if (proof === 'none') return false
  if (proof === 'signIn')
    return html`<p class="notice warn">${icon('warning')}<span>${texts.signInForThis}</span></p>`
  if (proof === 'code')
    return form.field({
      name: 'code',
      label: texts.codeAgain,
      hint: texts.codeAgainHint,
      autocomplete: 'one-time-code',
      isCode: true,
    })
  return html`${usernameField(texts.console)}${form.field({
    name: 'adminKey',
    label: texts.keyAgain,
    type: 'password',
    hint: texts.keyAgainHint,
    autocomplete: 'current-password',
  })}`
}

export const confirmBody = (context: ConsoleContext, state: ConfirmState): Html => {
  const { action, path, back, item, fields, title, page, values, ids = [], proof, errors = NO_ERRORS } = state
  const { root, say } = context
  const texts = textsOf(context)
  const form = new Form(context, errors)
  const inputs = (action.inputs ?? []).map(input => inputOf(context, form, input, values))
  const proved = action.needsKey && proofField(context, form, proof)
  const crumbs: readonly Crumb[] = [
    [page.path, say(page.title)],
    ...(title === null ? [] : [[back, title] as const]),
    [null, say(action.label)],
  ]
  return html`<div class="page-head">
${crumbsOf(context, crumbs)}
<div><h1>${say(action.label)}</h1>${title !== null && html`<p class="lead break"><bdi>${title}</bdi></p>`}</div>
</div>
${form.summary()}
<form class="card" method="post" action="${root}console/${path}"><div class="card-body stack-wide">
${item !== null && fields.length > 0 && html`<div class="card">${factsOf(context, fields, item, CELL_LENGTH)}</div>`}
${ids.length > 0 && html`<p>${texts.selectedRows} <strong>${ids.length}</strong></p>${ids.map(id => hiddenField(`id:${id}`, 'on'))}`}
${action.explanation !== undefined && html`<p>${say(action.explanation)}</p>`}
${inputs}
${proved}
<div class="form-actions"><a class="button" href="${root}console/${back}">${texts.cancel}</a><button class="${
    action.isDangerous ? 'danger filled' : 'primary'
  }">${say(action.label)}</button></div>
</div></form>`
}

export const shownBody = (
  context: ConsoleContext,
  action: ConsoleAction,
  secrets: ReturnType<NonNullable<ConsoleAction['shown']>>,
  back: string,
): Html => {
  const texts = textsOf(context)
  return html`<div class="page-head"><div><h1>${context.say(action.done)}</h1></div></div>
<div class="card"><div class="card-body stack-wide">
<p class="notice warn">${icon('warning')}<span>${texts.shownOnce}</span></p>
${secrets.map(
  ([label, text]) =>
    html`<div class="field"><span class="label">${context.say(label)}</span><span class="secret"><code>${text}</code></span></div>`,
)}
<div class="form-actions"><a class="button primary" href="${context.root}console/${back}">${texts.copied}</a></div>
</div></div>`
}

/** An error, with ways on. @param page of the list below which it has happened. */
export const failureBody = (
  context: ConsoleContext,
  { status, errors }: Pick<ApiResponse, 'status' | 'errors'>,
  page: ConsolePage | undefined,
): Html => {
  const { root, say, can } = context
  const texts = textsOf(context)
  const isGone = status === 404
  const hasList = page?.list !== undefined && can(page.list.scope)
  return html`<section class="empty"><span class="emblem${!isGone && ' bad'}">${icon(isGone ? 'search' : 'warning')}</span>
<h1>${isGone ? texts.gone : context.texts.failed}</h1>
${isGone ? html`<p>${texts.goneText}</p>` : new Form(context, errors).summary()}
<div class="buttons">${hasList && html`<a class="button primary" href="${root}console/${page.path}">${say(page.title)}</a>`}<a class="button${
    !hasList && ' primary'
  }" href="${root}console">${texts.toOverview}</a></div></section>`
}
