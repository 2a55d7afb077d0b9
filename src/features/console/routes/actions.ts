/** Buttons of the console: the page that asks for confirmation, and the call of the API. */
import { type TObject, Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FieldErrors } from '#base/errors'
import type {
  ActionInput,
  ApiResponse,
  ConsoleAction,
  ConsoleField,
  ConsolePage,
  ConsoleTable,
  Item,
} from '#http/pages/feature-pages'
import { FormText, Strict } from '#routes/schemas'
import { ERRORS } from '../definitions.ts'
import { confirmBody, shownBody, type Values } from '../render.ts'
import { enteredIn, fieldSchemas, filled, type Ids, idsIn, pageOf, refusedBy, type Shell } from './shell.ts'

/** An action with what its page needs. Paths are below the console, with the parameters of the route. */
interface Placed {
  readonly action: ConsoleAction
  readonly path: string
  /** The page of the button, and the entry of the menu. */
  readonly page: string
  readonly current: string
  /** The API that has what it is done to: an item, or a list with a row; `null`: nothing yet. */
  readonly source: { readonly api: string; readonly isList: boolean } | null
  readonly title: (item: Item) => string | null
  readonly list: ConsolePage
  /** Whether it is done to several rows, whose ids the form has. */
  readonly isBulk?: true
  /** The lines that say what it is done to. */
  readonly fields: readonly ConsoleField[]
}

export const placedActions = (entry: ConsolePage): readonly Placed[] => {
  const { path, list, item } = entry
  const itemPath = list === undefined ? path : `${path}/:id`
  const untitled = { list: entry, current: path, title: () => null, fields: [] }
  const onRows = (page: string, base: string, table: ConsoleTable): readonly Placed[] =>
    (table.rowActions ?? []).map(action => ({
      ...{ ...untitled, action, page, fields: table.columns },
      path: `${base}/:rowId/${action.name}`,
      source: { api: table.api, isList: true },
    }))
  return [
    ...(list?.actions ?? []).map(action => ({
      ...{ ...untitled, action, page: path, source: null },
      path: `${path}/${action.name}`,
    })),
    ...(list?.bulk ?? []).map(action => ({
      ...{ ...untitled, action, page: path, source: null, isBulk: true as const },
      path: `${path}/bulk/${action.name}`,
    })),
    ...(list === undefined ? [] : onRows(path, path, list)),
    ...(item?.actions ?? []).map(action => ({
      ...{ ...untitled, action, page: itemPath },
      path: `${itemPath}/${action.name}`,
      source: { api: item?.api ?? '', isList: false },
      title: item?.title ?? (() => null),
    })),
    ...(item?.sections ?? []).flatMap(section => {
      const page = `${itemPath}/${section.name}`
      return onRows(page, page, section)
    }),
  ]
}

/** The page of the list that has the row. */
interface Cursor {
  readonly cursor?: string
}

/** Pages of a list on which a row is looked for: rows that are new since the list was shown move it to a later one. */
const MAX_PAGES = 20

/** What an action is done to; an error where it is gone. A row is on the page of its list that the URL names, or a later one. */
const find = async (
  shell: Shell,
  request: FastifyRequest,
  source: Placed['source'],
  ids: Ids,
): Promise<ApiResponse> => {
  if (source === null) return { status: 200, headers: {}, body: null, errors: {} }
  const { api } = source
  if (!source.isList) return shell.read(request, api, ids)
  let { cursor } = request.validatedData.query as Cursor
  for (let page = 1; ; page += 1) {
    const response = await shell.read(request, pageOf(api, cursor), ids)
    if (response.status >= 400) return response
    const { results, nextCursor = null } = response.body
    const row = results.find(({ id }: { id: string }) => id === ids.rowId)
    if (row !== undefined) return { ...response, body: row }
    if (nextCursor === null || page === MAX_PAGES) return refusedBy(ERRORS.gone)
    cursor = nextCursor
  }
}

/** The fields of a form that an input begins with. @param value of choices a list. */
const initialOf = (name: string, value: string | readonly string[] = []): readonly [string, string][] =>
  typeof value === 'string' ? [[name, value]] : value.map(each => [`${name}:${each}`, ''])

const sendForm = async (
  shell: Shell,
  request: FastifyRequest,
  reply: FastifyReply,
  placed: Placed,
  sent: {
    readonly values: Values | null
    readonly errors: FieldErrors
    /** Of the rows that it is done to. */
    readonly ids: readonly string[]
  },
): Promise<FastifyReply> => {
  const { action, path, page, current, source, title, fields, list } = placed
  const ids = request.validatedData.params as Ids
  const found = await find(shell, request, source, ids)
  if (found.status >= 400) return shell.fail(request, reply, found)
  const { body: item } = found
  const { errors, values = null } = sent
  const initial = (action.inputs ?? []).flatMap(({ name, value }) =>
    source === null ? [] : initialOf(name, value?.(item)),
  )
  const state = {
    ...{ action, item, fields, errors, page: list, ids: sent.ids, proof: shell.proofOf(request) },
    path: pageOf(filled(path, ids), (request.validatedData.query as Cursor).cursor),
    back: filled(page, ids),
    title: title(item),
    values: values ?? Object.fromEntries(initial),
  }
  return shell.send(request, reply, {
    title: ({ say }) => say(action.label),
    body: context => confirmBody(context, state),
    current,
    isForm: true,
    errors,
  })
}

/** The fields of a form with the ids of selected rows. */
const SELECTED = /^id:([\da-f-]{36})$/

/** Rows that can be selected: those of a page. */
const MAX_SELECTED = 50

const withSelected = (schema: TObject): TObject => ({
  ...schema,
  patternProperties: { [SELECTED.source]: FormText },
  maxProperties: MAX_SELECTED + 10,
})

const selectedIn = (values: Values): readonly string[] =>
  Object.keys(values).flatMap(name => SELECTED.exec(name)?.[1] ?? [])

export const addAction = (app: FastifyInstance, shell: Shell, placed: Placed): void => {
  const { action, path, page, isBulk = false } = placed
  const { inputs = [], needsKey } = action
  const onRequest = shell.needsScope(action.scope)
  const cursor = placed.source?.isList && { cursor: Type.Optional(FormText) }
  const querystring = isBulk ? withSelected(Strict({})) : Strict({ ...cursor })
  const schema = { hide: true, params: idsIn(path), querystring }
  shell.addNotice(path, action.done)

  app.get(`/${path}`, { onRequest, schema }, (request, reply) => {
    const ids = selectedIn(request.validatedData.query as Values)
    if (isBulk && ids.length === 0) return reply.redirectToPage(`console/${page}`)
    return sendForm(shell, request, reply, placed, { values: null, errors: {}, ids })
  })

  const hasAdministrators = app.services.protectedRole !== null
  const proof = hasAdministrators
    ? { adminKey: Type.Optional(FormText), code: Type.Optional(FormText) }
    : { adminKey: FormText }
  const fields = Strict({ ...fieldSchemas(inputs), ...(needsKey && proof) })
  const body = isBulk ? withSelected(fields) : fields
  // Otherwise a stolen session could try keys without a limit.
  const config = needsKey ? { rateLimit: 'console' } : {}
  const postSchema = { ...schema, body, ...(isBulk && { querystring: Strict({}) }) }
  app.post(`/${path}`, { onRequest, schema: postSchema, config }, async (request, reply) => {
    const { adminKey = '', code = '', ...values } = request.validatedData.body as Values
    const ids = request.validatedData.params as Ids
    const selected = selectedIn(values)
    const unproved = needsKey ? await shell.prove(request, reply, { adminKey, code }) : null
    if (unproved !== null)
      return sendForm(shell, request, reply.relay(unproved), placed, {
        values,
        errors: unproved.errors,
        ids: selected,
      })
    const input = Object.fromEntries(inputs.map(each => [each.name, enteredIn(each, values)]))
    const { id = '', rowId = '' } = ids
    const { response, left } = isBulk
      ? await callForEach(shell, request, action, selected, input)
      : { response: await shell.call(request, action.call({ id, rowId }, input)), left: [] }
    const { errors } = response
    if (response.status >= 400)
      return sendForm(shell, request, reply.relay(response), placed, { values, errors, ids: left })
    return sendDone(app, shell, request, reply, placed, response)
  })
}

/** What follows an action that has succeeded. */
const sendDone = (
  app: FastifyInstance,
  shell: Shell,
  request: FastifyRequest,
  reply: FastifyReply,
  { action, path, page, current }: Placed,
  { body }: ApiResponse,
) => {
  const back = filled(action.next ?? page, request.validatedData.params as Ids)
  if (action.signsIn) {
    reply.setAccessToken(body.accessToken, Date.parse(body.expiresAt))
    return reply.redirectToPage(app.config.hasPages ? 'security' : `console/${back}`)
  }
  if (action.shown === undefined) return reply.redirectToPage(`console/${back}`, path)
  const secrets = action.shown(body)
  return shell.send(request, reply, {
    title: ({ say }) => say(action.done),
    body: context => shownBody(context, action, secrets, back),
    current,
    isForm: true,
  })
}

const DONE: ApiResponse = { status: 200, headers: {}, body: null, errors: {} }

/** Calls the API for each selected row. @returns the last error with the rows that are left; those that are gone count as done. */
const callForEach = async (
  shell: Shell,
  request: FastifyRequest,
  action: ConsoleAction,
  selected: readonly string[],
  input: ActionInput,
): Promise<{ readonly response: ApiResponse; readonly left: readonly string[] }> => {
  const left: string[] = []
  let response = DONE
  for (const id of selected) {
    const outcome = await shell.call(request, action.call({ id, rowId: '' }, input))
    if (outcome.status < 400 || outcome.status === 404) continue
    left.push(id)
    response = outcome
  }
  return { response, left }
}
