/** Renders what `ConsoleParts` declare: lists, items, tables, forms. Every value is escaped by `html`. */
import type { FieldErrors } from '#base/errors'
import type { ApiResponse } from '#http/pages/feature-pages'
import {
  type ConsoleAction,
  type ConsoleContext,
  type ConsoleField,
  type ConsoleInput,
  type ConsoleItem,
  type ConsoleList,
  type ConsolePage,
  type ConsoleSection,
  type ConsoleTable,
  Form,
  Html,
  html,
  type Item,
  NO_ERRORS,
  type Page,
  type Text,
  usernameField,
} from '#http/pages/feature-pages'
import { TEXTS } from './texts.ts'

/** Characters of a value in a table. The page of the item has all of them. */
const CELL_LENGTH = 200

/** What a form was sent with, and the query of a list. */
export type Values = Readonly<Record<string, string>>

export const textsOf = ({ language }: ConsoleContext) => (language === 'de' ? TEXTS.de : TEXTS.en)

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

const buttonLink = (
  { root, say }: ConsoleContext,
  { label, name, isDangerous }: ConsoleAction,
  path: string,
  of?: string,
  cursor?: string,
): Html =>
  html`<a class="button${isDangerous && ' danger'}" href="${root}console/${path}/${name}${queryOf({ cursor })}"${
    of !== undefined && html` aria-label="${say(label)}: ${of}"`
  }>${say(label)}</a>`

const isShown = ({ can }: ConsoleContext, { scope, isOffered }: ConsoleAction, item: Item): boolean =>
  can(scope) && (isOffered?.(item) ?? true)

const buttonLinks = (
  context: ConsoleContext,
  actions: readonly ConsoleAction[] = [],
  path: string,
  item: Item,
): Html | false => {
  const shown = actions.filter(action => isShown(context, action, item))
  return (
    shown.length > 0 && html`<p class="buttons">${shown.map(each => buttonLink(context, each, path))}</p>`
  )
}

/** The path of a row of a table on the page of an item or a list, below the console. */
const rowPath = (path: string, { id }: Item): string => `${path}/${encodeURIComponent(id)}`

/** @param cursor of the page that has these rows, for their actions. */
export const tableOf = (
  context: ConsoleContext,
  table: ConsoleTable,
  path: string,
  rows: readonly Item[],
  cursor?: string,
): Html => {
  const { root, say } = context
  const { columns, link, rowActions = [] } = table
  if (rows.length === 0) return html`<p class="muted">${say(table.empty)}</p>`
  const actions = rowActions.filter(({ scope }) => context.can(scope))
  const cell = (row: Item, column: ConsoleField, index: number): Html => {
    const value = shownValue(context, column, row, CELL_LENGTH)
    const target = index === 0 ? (link?.(row) ?? null) : null
    return target === null ? value : html`<a href="${root}console/${target}">${value}</a>`
  }
  const line = (row: Item): Html =>
    html`<tr>${columns.map(
      (column, index) =>
        html`<td data-label="${say(column.label)}"><div>${cell(row, column, index)}</div></td>`,
    )}${
      actions.length > 0 &&
      html`<td class="buttons">${actions
        .filter(action => isShown(context, action, row))
        .map(action =>
          buttonLink(context, action, rowPath(path, row), String(row.name ?? row.id), cursor),
        )}</td>`
    }</tr>`
  return html`<table>
<thead><tr>${columns.map(({ label }) => html`<th scope="col">${say(label)}</th>`)}${
    actions.length > 0 && html`<th scope="col">${textsOf(context).actions}</th>`
  }</tr></thead>
<tbody>
${rows.map(line)}
</tbody>
</table>`
}

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
    return form.group(
      name,
      label,
      options.map(([value, text]) =>
        form.check({
          name: `${name}:${value}`,
          isChecked: `${name}:${value}` in values,
          label: html`<span><code>${value}</code> <span lang="en">${text !== value && text}</span></span>`,
        }),
      ),
    )
  return form.field({
    name,
    label,
    type: kind === 'day' ? 'date' : kind,
    autocomplete: 'off',
    value: values[name] ?? '',
    isFilter,
    ...(hint !== undefined && { hint: say(hint) }),
    ...(isOptional === true && { isOptional }),
  })
}

export const framed = (
  context: ConsoleContext,
  {
    title,
    body,
    pages,
    current = '',
    hasErrors = false,
  }: {
    readonly title: string
    readonly body: Html
    /** The pages of the menu; none before the sign-in. */
    readonly pages: readonly ConsolePage[]
    /** The path of the page in the menu. */
    readonly current?: string
    readonly hasErrors?: boolean
  },
): Page => {
  const { root, product, say, can } = context
  const texts = textsOf(context)
  const entry = (path: string, text: string): Html =>
    html`<li><a href="${root}console${path && `/${path}`}"${path === current && html` aria-current="page"`}>${text}</a></li>`
  const menu = pages.filter(({ list, item }) => can((list ?? item)?.scope ?? ''))
  const header = html`<p class="product">${product} <span class="muted">${texts.console}</span></p>
${
  pages.length > 0 &&
  html`<nav aria-label="${texts.menu}"><ul>${entry('', texts.overview)}${menu.map(each =>
    entry(each.path, say(each.title)),
  )}</ul></nav>
<form method="post" action="${root}console/sign-out"><button class="plain">${texts.signOut}</button></form>`
}`
  return { title: `${title} – ${texts.console}`, body, hasErrors, header, assetsOf: 'console' }
}

export type SignInNotice = 'signInAgain' | 'signInLost' | null

export const signInBody = (context: ConsoleContext, errors: FieldErrors, notice: SignInNotice): Html => {
  const texts = textsOf(context)
  const form = new Form(context, errors)
  const field = form.field({
    name: 'adminKey',
    label: texts.adminKey,
    type: 'password',
    hint: texts.adminKeyHint,
    autocomplete: 'current-password',
  })
  return html`<div class="card narrow">
<h1>${texts.signIn}</h1>
${form.summary()}
${notice !== null && html`<p role="status">${texts[notice]}</p>`}
<form method="post" action="${context.root}console/sign-in">
${usernameField(texts.console)}
${field}
<button class="main">${texts.signInButton}</button>
</form>
</div>`
}

const noticeOf = (notice: string | null): Html | false =>
  notice !== null && html`<div class="done" role="status" tabindex="-1" autofocus><p>${notice}</p></div>`

export interface ListState {
  readonly page: ConsolePage
  readonly list: ConsoleList
  readonly values: Values
  readonly response: ApiResponse
  /** The URL of the stream for a list that is live, below the console. */
  readonly live: string
  readonly notice: string | null
}

const filterForm = (context: ConsoleContext, form: Form, { page, list, values }: ListState): Html | false => {
  const texts = textsOf(context)
  const { filters } = list
  if (filters === undefined) return false
  const fields = filters.map(filter => {
    const { options } = filter
    const isComplete = options === undefined || options.some(([value]) => value === '')
    const all = isComplete ? filter : { ...filter, options: [['', texts.any] as const, ...options] }
    return inputOf(context, form, all, values, true)
  })
  const isFiltered = filters.some(({ name }) => values[name])
  const action = `${context.root}console/${page.path}`
  return html`<details class="card"${(isFiltered || form.hasErrors) && html` open`}>
<summary>${texts.filter}</summary>
<form method="get" action="${action}" class="filters">
${fields}
<p class="buttons"><button>${texts.filterButton}</button>${isFiltered && html` <a href="${action}">${texts.reset}</a>`}</p>
</form>
</details>`
}

interface PagerState {
  /** Below the console. */
  readonly path: string
  readonly title: Text
  readonly values: Values
  readonly parameter: string
}

/** Links to other pages of a table. @param parameter of the URL that has the cursor, among the others in `values`. */
const pager = (
  context: ConsoleContext,
  { path, title, values, parameter }: PagerState,
  nextCursor: string | null,
): Html | false => {
  const { root, say } = context
  const texts = textsOf(context)
  const { [parameter]: cursor, ...others } = values
  const href = (more: Values): string => `${root}console/${path}${queryOf({ ...others, ...more })}`
  if (cursor === undefined && nextCursor === null) return false
  return html`<nav class="pager" aria-label="${say(title)}"><ul>${
    cursor !== undefined && html`<li><a href="${href({})}">${texts.firstPage}</a></li>`
  }${nextCursor !== null && html`<li><a href="${href({ [parameter]: nextCursor })}" rel="next">${texts.nextPage}</a></li>`}</ul></nav>`
}

export const listBody = (context: ConsoleContext, state: ListState): Html => {
  const { page, list, values, response, live, notice } = state
  const { say } = context
  const texts = textsOf(context)
  const form = new Form(context, response.errors, 'filter-')
  const filters = filterForm(context, form, state)
  const { results = [], nextCursor = null } = response.body ?? {}
  const summary = form.hasErrors ? null : (list.summary?.(response.body, context) ?? null)
  const isLive = list.isLive === true && values.cursor === undefined && !form.hasErrors
  return html`<h1>${say(page.title)}</h1>
${noticeOf(notice)}
${form.summary()}
${buttonLinks(context, list.actions, page.path, null)}
${filters}
${
  !form.hasErrors &&
  html`<section id="rows"${
    isLive &&
    html` data-live="${context.root}console/${live}" data-following="${texts.live}" data-pause="${texts.pause}" data-follow="${texts.follow}"`
  }>
${summary !== null && html`<p class="muted">${summary}</p>`}
${tableOf(context, list, page.path, results, values.cursor)}
${pager(context, { path: page.path, title: page.title, values, parameter: 'cursor' }, nextCursor)}
</section>`
}`
}

export interface SectionState {
  readonly section: ConsoleSection
  readonly response: ApiResponse
}

export interface ItemState {
  readonly item: ConsoleItem
  readonly body: Item
  /** The path of the item below the console. */
  readonly path: string
  readonly sections: readonly SectionState[]
  /** By the name of a section, the cursor of its page. */
  readonly cursors: Values
  readonly notice: string | null
}

/** The lines about an item. @param length of values, in characters. */
const fieldsOf = (
  context: ConsoleContext,
  fields: readonly ConsoleField[],
  item: Item,
  length: number,
): Html =>
  html`<dl>${fields.map(
    field =>
      html`<div><dt>${context.say(field.label)}</dt><dd>${shownValue(context, field, item, length)}</dd></div>`,
  )}</dl>`

export const itemBody = (context: ConsoleContext, state: ItemState): Html => {
  const { item, body, path, cursors, notice } = state
  const { root, say } = context
  const rowsOf = ({ section, response }: SectionState): Html => {
    const { name, title, more } = section
    if (response.status >= 400) return html`${new Form(context, response.errors, name).summary()}`
    const { results, nextCursor = null } = response.body
    return html`${tableOf(context, section, `${path}/${name}`, results, cursors[name])}
${more === undefined && pager(context, { path, title, values: cursors, parameter: name }, nextCursor)}`
  }
  const sectionOf = ({ section, response }: SectionState): Html => html`<section>
<h2>${say(section.title)}</h2>
${rowsOf({ section, response })}
${section.more !== undefined && html`<p><a href="${root}console/${section.more(body.id)}">${textsOf(context).more}</a></p>`}
</section>`
  return html`<h1><bdi>${item.title(body)}</bdi></h1>
${noticeOf(notice)}
${buttonLinks(context, item.actions, path, body)}
<section>${fieldsOf(context, item.fields, body, Number.POSITIVE_INFINITY)}</section>
${state.sections.map(sectionOf)}`
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
  readonly values: Values
  readonly errors?: FieldErrors
}

export const confirmBody = (context: ConsoleContext, state: ConfirmState): Html => {
  const { action, path, back, item, fields, title, values, errors = NO_ERRORS } = state
  const { root, say } = context
  const texts = textsOf(context)
  const form = new Form(context, errors)
  const inputs = (action.inputs ?? []).map(input => inputOf(context, form, input, values))
  const keyField =
    action.needsKey &&
    form.field({
      name: 'adminKey',
      label: texts.keyAgain,
      type: 'password',
      hint: texts.keyAgainHint,
      autocomplete: 'current-password',
    })
  return html`<div class="card narrow">
<h1>${say(action.label)}</h1>
${form.summary()}
${title !== null && html`<p><strong><bdi>${title}</bdi></strong></p>`}
${item !== null && fields.length > 0 && fieldsOf(context, fields, item, CELL_LENGTH)}
${action.explanation !== undefined && html`<p>${say(action.explanation)}</p>`}
<form method="post" action="${root}console/${path}">
${action.needsKey && usernameField(texts.console)}
${inputs}
${keyField}
<p class="buttons"><button${action.isDangerous && html` class="danger"`}>${say(action.label)}</button>
<a href="${root}console/${back}">${texts.cancel}</a></p>
</form>
</div>`
}

export const shownBody = (
  context: ConsoleContext,
  action: ConsoleAction,
  secrets: ReturnType<NonNullable<ConsoleAction['shown']>>,
  back: string,
): Html => {
  const texts = textsOf(context)
  return html`<div class="card narrow">
<h1>${context.say(action.done)}</h1>
<p>${texts.shownOnce}</p>
${secrets.map(([label, text]) => html`<p><strong>${context.say(label)}</strong> <code class="secret">${text}</code></p>`)}
</div>
<p><a href="${context.root}console/${back}">${texts.copied}</a></p>`
}

export const errorBody = (
  context: ConsoleContext,
  errors: FieldErrors,
): Html => html`<div class="card narrow">
<h1>${context.texts.failed}</h1>
${new Form(context, errors).summary()}
</div>`
