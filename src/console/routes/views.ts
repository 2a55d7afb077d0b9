/** Pages of the console that show what there is: lists, and items with their sections. */
import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { FormText, Strict } from '../../../routes/schemas.ts'
import type { ConsoleInput, ConsoleItem, ConsoleList, ConsolePage } from '../../pages/feature-pages.ts'
import { LATEST_EVENTS, overviewBody } from '../overview.ts'
import { itemBody, listBody, textsOf, type Values } from '../render.ts'
import { enteredIn, fieldSchemas, filled, type Ids, idsIn, type Shell } from './shell.ts'

/** The path of the API with the filters of a page and its cursor. */
const withFilters = (api: string, filters: readonly ConsoleInput[], values: Values): string => {
  const query = new URLSearchParams()
  for (const filter of filters) {
    const value = enteredIn(filter, values)
    if (typeof value === 'string') query.set(filter.name, value)
  }
  if (values.cursor !== undefined) query.set('cursor', values.cursor)
  if (query.size === 0) return api
  return `${api}${api.includes('?') ? '&' : '?'}${query}`
}

export const addList = (app: FastifyInstance, shell: Shell, page: ConsolePage, list: ConsoleList): void => {
  const { filters = [] } = list
  const querystring = Strict({ ...fieldSchemas(filters), cursor: Type.Optional(FormText) })
  app.get(`/${page.path}`, { schema: { hide: true, querystring } }, async (request, reply) => {
    const sent = Object.entries(request.validatedData.query as Values)
    const values = Object.fromEntries(sent.filter(([, value]) => value !== ''))
    const response = await shell.read(request, withFilters(list.api, filters, values))
    if (response.status === 403 || response.status >= 500) return shell.fail(request, reply, response)
    const notice = shell.takeNotice(reply)
    return shell.send(request, reply.relay(response), {
      title: ({ say }) => say(page.title),
      body: context => listBody(context, { page, list, values, response, notice: notice(context) }),
      current: page.path,
      errors: response.errors,
    })
  })
}

export const addItem = (app: FastifyInstance, shell: Shell, page: ConsolePage, item: ConsoleItem): void => {
  const path = page.list === undefined ? page.path : `${page.path}/:id`
  app.get(`/${path}`, { schema: { hide: true, params: idsIn(path) } }, async (request, reply) => {
    const ids = request.validatedData.params as Ids
    const response = await shell.read(request, filled(item.api, ids))
    if (response.status >= 400) return shell.fail(request, reply, response)
    const shown = (item.sections ?? []).filter(({ scope }) => shell.may(request, scope))
    const sections = await Promise.all(
      shown.map(async section => ({
        section,
        response: await shell.read(request, filled(section.api, ids)),
      })),
    )
    const { body } = response
    const notice = shell.takeNotice(reply)
    const state = { item, body, path: filled(path, ids), sections }
    return shell.send(request, reply, {
      title: () => item.title(body),
      body: context => itemBody(context, { ...state, notice: notice(context) }),
      current: page.path,
    })
  })
}

export const addOverview = (app: FastifyInstance, shell: Shell): void => {
  app.get('', { schema: { hide: true } }, async (request, reply) => {
    const { scope, api } = LATEST_EVENTS
    const events = shell.may(request, scope) ? await shell.read(request, api) : null
    return shell.send(request, reply, {
      title: context => textsOf(context).overview,
      body: context => overviewBody(context, { events }),
      current: '',
    })
  })
}
