/** Pages of the console that show what there is: lists, and items with their sections. */
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { asciiTrim } from '#base/ascii'
import { ERRORS } from '#base/errors'
import type {
  ConsoleInput,
  ConsoleItem,
  ConsoleList,
  ConsolePage,
  ConsolePlot,
  ConsoleSection,
} from '#http/pages/feature-pages'
import { adminEventsProperties, sendEvents } from '#routes/events'
import { adminKeyOf } from '#routes/request-context'
import { FormText, Strict } from '#routes/schemas'
import { serializeEvent } from '#routes/serializers'
import { ERRORS as OWN_ERRORS } from '../definitions.ts'
import { textsOf } from '../frame.ts'
import { RANGES, type RangeName } from '../history-curves.ts'
import { overviewBody, PLOTS_SCOPE } from '../overview.ts'
import { itemBody, listBody, type Values } from '../render.ts'
import {
  enteredIn,
  fieldSchemas,
  filled,
  type Ids,
  idsIn,
  pageOf,
  refusedBy,
  type Shell,
  withQuery,
} from './shell.ts'

const queryOf = (filters: readonly ConsoleInput[], values: Values): URLSearchParams => {
  const query = new URLSearchParams()
  for (const filter of filters) {
    const value = enteredIn(filter, values)
    if (typeof value === 'string') query.set(filter.name, value)
  }
  if (values.cursor !== undefined) query.set('cursor', values.cursor)
  return query
}

/**
 * Puts ids in place of what people know, such as e-mails.
 * @returns the values for the API; `null` if it does not know one of them.
 */
const lookUp = async (
  shell: Shell,
  request: FastifyRequest,
  filters: readonly ConsoleInput[],
  values: Values,
): Promise<Values | null> => {
  const found: Record<string, string> = { ...values }
  for (const { name, lookups = [] } of filters) {
    const text = asciiTrim(values[name] ?? '')
    const [known] = lookups.flatMap(({ scope, api, idOf }) => {
      const path = text !== '' && shell.may(request, scope) ? api(text) : null
      return path === null ? [] : [{ path, idOf }]
    })
    if (known === undefined) continue
    const { status, body } = await shell.read(request, known.path)
    const id = status < 400 ? known.idOf(body, text) : null
    if (id === null) return null
    found[name] = id
  }
  return found
}

export const addList = (app: FastifyInstance, shell: Shell, page: ConsolePage, list: ConsoleList): void => {
  const { filters = [] } = list
  const querystring = Strict({ ...fieldSchemas(filters), cursor: Type.Optional(FormText) })
  app.get(`/${page.path}`, { schema: { hide: true, querystring } }, async (request, reply) => {
    const sent = Object.entries(request.validatedData.query as Values)
    const values = Object.fromEntries(sent.filter(([, value]) => value !== ''))
    const known = await lookUp(shell, request, filters, values)
    const query = queryOf(filters, known ?? {})
    const response =
      known === null
        ? refusedBy(OWN_ERRORS.nothingFound)
        : await shell.read(request, withQuery(list.api, query))
    if (response.status === 403 || response.status >= 500) return shell.fail(request, reply, response)
    const names = await shell.namesOf(request, list, response)
    const notice = shell.takeNotice(reply)
    const state = { page, list, values, response, names, live: `${page.path}/live?${query}` }
    return shell.send(request, reply.relay(response), {
      title: ({ say }) => say(page.title),
      body: context => listBody(context, { ...state, notice: notice(context) }),
      current: page.path,
      errors: response.errors,
    })
  })
}

/** Addresses that no page has, so that they lead on to one. */
export const addUnknown = (app: FastifyInstance, shell: Shell): void => {
  app.get('/*', { schema: { hide: true, querystring: {} } }, (request, reply) =>
    shell.fail(request, reply, refusedBy(ERRORS.routeNotFound)),
  )
}

export const STREAM_PATH = '/events/live'

/**
 * The stream that the audit log follows where script runs: that of the API.
 * @param isOpen whether the session of the request still exists, and its key is valid.
 */
export const addStream = (
  app: FastifyInstance,
  shell: Shell,
  isOpen: (request: FastifyRequest) => Promise<boolean>,
): void => {
  const querystring = Strict(adminEventsProperties(Object.keys(app.services.eventSchemas)))
  const onRequest = shell.needsScope('events:read')
  app.get(STREAM_PATH, { onRequest, schema: { hide: true, querystring } }, (request, reply) =>
    sendEvents(request, reply, {
      query: request.validatedData.query as Parameters<typeof sendEvents>[2]['query'],
      serialize: serializeEvent,
      stream: {
        credential: adminKeyOf(request).id,
        network: null,
        isAuthenticated: () => isOpen(request),
      },
    }),
  )
}

/** The page of an item, and one for each of its sections. */
export const addItem = (app: FastifyInstance, shell: Shell, page: ConsolePage, item: ConsoleItem): void => {
  const path = page.list === undefined ? page.path : `${page.path}/:id`
  const { sections: all = [] } = item
  const add = (section: ConsoleSection | null): void => {
    const url = section === null ? path : `${path}/${section.name}`
    const querystring = Strict({ ...(section !== null && { cursor: Type.Optional(FormText) }) })
    const schema = { hide: true, params: idsIn(path), querystring }
    const onRequest = section === null ? [] : [shell.needsScope(section.scope)]
    app.get(`/${url}`, { onRequest, schema }, async (request, reply) => {
      const ids = request.validatedData.params as Ids
      const { cursor } = request.validatedData.query as { cursor?: string }
      const response = await shell.read(request, item.api, ids)
      if (response.status >= 400) return shell.fail(request, reply, response)
      const read = async (shown: ConsoleSection) => {
        const rows = await shell.read(request, pageOf(shown.api, cursor), ids)
        return { section: shown, response: rows, names: await shell.namesOf(request, shown, rows) }
      }
      const shown = section === null ? null : await read(section)
      const sections = all.filter(({ scope }) => shell.may(request, scope))
      const { body } = response
      const notice = shell.takeNotice(reply)
      const state = { page, item, body, path: filled(path, ids), sections, shown, cursor }
      return shell.send(request, reply, {
        title: ({ say }) =>
          section === null ? item.title(body) : `${say(section.title)}, ${item.title(body)}`,
        body: context => itemBody(context, { ...state, notice: notice(context) }),
        current: page.path,
      })
    })
  }
  for (const section of [null, ...all]) add(section)
}

const Range = Type.Unsafe<RangeName>({ type: 'string', enum: Object.keys(RANGES), default: 'hour' })

export const addOverview = (
  app: FastifyInstance,
  shell: Shell,
  plots: readonly ConsolePlot[],
  section: ConsoleSection,
): void => {
  const { consoleHistory } = app.services
  const querystring = Strict({ range: Range })
  const readEvents = async (request: FastifyRequest) => {
    const response = await shell.read(request, section.api)
    return { section, response, names: await shell.namesOf(request, section, response) }
  }
  app.get('', { schema: { hide: true, querystring } }, async (request, reply) => {
    const { range } = request.validatedData.query as { range: RangeName }
    const events = shell.may(request, section.scope) ? await readEvents(request) : null
    const history = shell.may(request, PLOTS_SCOPE) ? await consoleHistory.read(range) : null
    return shell.send(request, reply, {
      title: context => textsOf(context).overview,
      body: context => overviewBody(context, { range, plots, history, events }),
      current: '',
    })
  })
}
