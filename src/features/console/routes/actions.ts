/** Buttons of the console: the page that asks for confirmation, and the call of the API. */
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { asciiTrim } from '#base/ascii'
import type { FieldErrors } from '#base/errors'
import type {
  ApiResponse,
  ConsoleAction,
  ConsoleField,
  ConsolePage,
  ConsoleTable,
  Item,
} from '#http/pages/feature-pages'
import { FormText, Strict } from '#routes/schemas'
import { isSameKey } from '../console-sessions.ts'
import { ERRORS } from '../definitions.ts'
import { confirmBody, shownBody, type Values } from '../render.ts'
import { enteredIn, fieldSchemas, filled, type Ids, idsIn, pageOf, type Shell } from './shell.ts'

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
  /** The lines that say what it is done to. */
  readonly fields: readonly ConsoleField[]
}

export const placedActions = ({ path, list, item }: ConsolePage): readonly Placed[] => {
  const itemPath = list === undefined ? path : `${path}/:id`
  const untitled = { current: path, title: () => null, fields: [] }
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
    ...(list === undefined ? [] : onRows(path, path, list)),
    ...(item?.actions ?? []).map(action => ({
      ...{ ...untitled, action, page: itemPath },
      path: `${itemPath}/${action.name}`,
      source: { api: item?.api ?? '', isList: false },
      title: item?.title ?? (() => null),
    })),
    ...(item?.sections ?? []).flatMap(section => onRows(itemPath, `${itemPath}/${section.name}`, section)),
  ]
}

/** The page of the list that has the row. */
interface Cursor {
  readonly cursor?: string
}

/** The errors of an action on something that is gone, in the form of the API's. */
const GONE = { global: ['There is nothing any more that this could be done to'] }

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
    if (nextCursor === null || page === MAX_PAGES) return { ...response, status: 404, errors: GONE }
    cursor = nextCursor
  }
}

const sendForm = async (
  shell: Shell,
  request: FastifyRequest,
  reply: FastifyReply,
  placed: Placed,
  sent: { readonly values: Values | null; readonly errors: FieldErrors },
): Promise<FastifyReply> => {
  const { action, path, page, current, source, title, fields } = placed
  const ids = request.validatedData.params as Ids
  const found = await find(shell, request, source, ids)
  if (found.status >= 400) return shell.fail(request, reply, found)
  const { body: item } = found
  const { errors, values = null } = sent
  const initial = (action.inputs ?? []).flatMap(({ name, value }) =>
    value === undefined ? [] : [[name, value(item)]],
  )
  const state = {
    ...{ action, item, fields, errors },
    path: pageOf(filled(path, ids), (request.validatedData.query as Cursor).cursor),
    back: filled(page, ids),
    title: title(item),
    values: values ?? Object.fromEntries(initial),
  }
  return shell.send(request, reply, {
    title: ({ say }) => say(action.label),
    body: context => confirmBody(context, state),
    current,
    errors,
  })
}

export const addAction = (app: FastifyInstance, shell: Shell, placed: Placed): void => {
  const { action, path, page, current } = placed
  const { inputs = [], needsKey, shown } = action
  const onRequest = shell.needsScope(action.scope)
  const schema = {
    hide: true,
    params: idsIn(path),
    querystring: Strict({ ...(placed.source?.isList && { cursor: Type.Optional(FormText) }) }),
  }
  shell.addNotice(path, action.done)

  app.get(`/${path}`, { onRequest, schema }, (request, reply) =>
    sendForm(shell, request, reply, placed, { values: null, errors: {} }),
  )

  const body = Strict({ ...fieldSchemas(inputs), ...(needsKey && { adminKey: FormText }) })
  // Otherwise a stolen session could try keys without a limit.
  const config = needsKey ? { rateLimit: 'console' } : {}
  app.post(`/${path}`, { onRequest, schema: { ...schema, body }, config }, async (request, reply) => {
    const { adminKey = '', ...values } = request.validatedData.body as Values
    const ids = request.validatedData.params as Ids
    if (needsKey && !isSameKey(asciiTrim(adminKey), request.consoleKey)) {
      const { status, field, message } = ERRORS.otherAdminKey
      const errors = { [field]: [message] }
      return sendForm(shell, request, reply.relay({ status, headers: {}, errors }), placed, {
        values,
        errors,
      })
    }
    const input = Object.fromEntries(inputs.map(each => [each.name, enteredIn(each, values)]))
    const { id = '', rowId = '' } = ids
    const response = await shell.call(request, action.call({ id, rowId }, input))
    const { errors } = response
    if (response.status >= 400)
      return sendForm(shell, request, reply.relay(response), placed, { values, errors })
    const back = filled(action.next ?? page, ids)
    if (shown === undefined) return reply.redirectToPage(`console/${back}`, path)
    const secrets = shown(response.body)
    return shell.send(request, reply, {
      title: ({ say }) => say(action.done),
      body: context => shownBody(context, action, secrets, back),
      current,
    })
  })
}
