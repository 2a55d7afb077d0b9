/** Cursors of every list, and text in every place of every route, derived from the routes: a new one is covered at once. */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { ID } from '#base/ids'
import { exampleOf } from '#http/openapi/bodies'
import { toLines } from '#http/validation/ndjson'
import { allEvents } from '../support/admin-routes.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  freshEmail,
  PASSWORD,
  signIn,
  signUp,
} from '../support/build.ts'
import { importAll } from '../support/bulk-users.ts'
import { MAILED_SIGN_INS } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'

type Schema = Parameters<typeof exampleOf>[0]
type Method = InjectOptions['method'] & string

/** A list in one of its orders. */
interface List {
  readonly url: string
  readonly sort: string | undefined
  readonly title: string
  readonly ask: (query?: Record<string, string>) => Promise<LightMyRequestResponse>
}

const base64url = (text: string): string => Buffer.from(text).toString('base64url')

const SQL = `' OR '1'='1'; DROP TABLE users; --`

/** Values of the parts of a cursor that no row has. */
const NO_PARTS = [SQL, '', 'x', '\0', '\ud800', '\ufdfa', -1, 1e300, null, [], {}, 'x'.repeat(100_000)]

/** Cursors that resemble this one, whose last part is an id. */
const forgedFrom = (good: string): string[] => {
  const text = Buffer.from(good, 'base64url').toString()
  const [, id = ''] = /([0-9a-f-]{36})\W*$/.exec(text) ?? []
  const parts: unknown = text.startsWith('[') ? JSON.parse(text) : null
  return [
    ...['', 'x', '\0', '😀', SQL, 'A'.repeat(100_000), good + good, good.slice(4), good.slice(0, -4)],
    ...[
      SQL,
      '{}',
      '[]',
      'null',
      '[[[]]]',
      text.replace(id, SQL),
      text + SQL,
      text.replace(id, `${id}\n`),
    ].map(base64url),
    ...(Array.isArray(parts)
      ? [[], parts.slice(1), [...parts, 1], ...NO_PARTS.map(part => [...parts.slice(0, 2), part])].map(
          forged => base64url(JSON.stringify(forged)),
        )
      : []),
  ]
}

/** Both order users, so a cursor of one is a position in the other. */
const LISTS_OF_USERS = ['/users', '/admin/users']

/** A cursor that is an id alone is a position in every list that is sorted by ids. */
const isPosition = (cursor: string): boolean => ID.test(Buffer.from(cursor, 'base64url').toString())

/** Lists of events share the positions of the log. */
const isLogPosition = (cursor: string): boolean =>
  Buffer.from(cursor, 'base64url').toString().startsWith('at ')

/** Text that some layer cannot store, changes, or takes for its end. Long enough for a password. */
const HOSTILE = ['\0', '\ud800', '\ufdfa', '\ufdfa'.repeat(120), '\u{10ffff}'].map(
  text => `a${text}b c d e f`,
)

/** A body for each text in a schema, which has another text there, and its place. */
function* withText(
  schema: Schema,
  text: string,
  path = '',
): Generator<readonly [path: string, body: unknown]> {
  const { type = [], properties, items, allOf = [], anyOf = [] } = schema
  const example = exampleOf(schema)
  if ([type].flat().includes('string')) yield [path, text]
  if (items !== undefined) for (const [at, item] of withText(items, text, `${path}.0`)) yield [at, [item]]
  for (const part of [...allOf, ...anyOf]) yield* withText(part, text, path)
  for (const [name, property] of Object.entries(properties ?? {}))
    for (const [at, value] of withText(property, text, `${path}.${name}`))
      yield [at, { ...(example as object), [name]: value }]
  if ([type].flat().includes('object') && properties === undefined)
    yield* [{ [text]: 1 }, { a: text }, { a: [{ [text]: text }] }].map(value => [path, value] as const)
}

/** The values of all properties with this name. */
const valuesOf = (name: string, value: unknown): unknown[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, item]) => [
        ...(key === name ? [item] : []),
        ...valuesOf(name, item),
      ])

/** The schemas of inputs by route, except of the documentation. */
const inputsOf = ({ routeTable }: FastifyInstance) =>
  routeTable.flatMap(({ url, methods, options: { schema, config } }) =>
    methods
      .filter(method => method !== 'HEAD' && !/^\/(docs|openapi)/.test(url))
      .map(method => ({
        method: method as Method,
        url,
        gate: config?.gate,
        isPage: schema?.hide === true,
        isNdjson: schema?.consumes !== undefined,
        body: schema?.body as Schema | undefined,
        query: Object.entries((schema?.querystring as Schema | undefined)?.properties ?? {}),
      })),
  )

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { env: MAILED_SIGN_INS })
  let user = await signUp(app)
  const [target, bystander] = [await signUp(app), await signUp(app)]
  const routes = inputsOf(app)

  /** Some requests end the session. */
  const renew = async (): Promise<void> => {
    if ((await accountStatus(app, user.token)) !== 200) user = await signUp(app)
  }
  const headersOf = (gate: string | undefined) => (gate === 'adminKey' ? asAdmin : bearer(user.token))
  const urlOf = (url: string): string => url.replace(/:\w+|\*/g, target.id)

  t.test('K6: every list refuses a cursor that it has not made', async t => {
    const lists: readonly List[] = routes.flatMap(({ method, url, gate, query }) => {
      if (!query.some(([name]) => name === 'cursor')) return []
      const sorts = query.find(([name]) => name === 'sort')?.[1].enum?.map(String) ?? [undefined]
      return sorts.map(sort => {
        const ask: List['ask'] = (more = {}) =>
          app.inject({
            method,
            url: urlOf(url),
            headers: headersOf(gate),
            query: { limit: '1', ...(sort !== undefined && { sort }), ...more },
          })
        return { url, sort, ask, title: `${url} ${sort}` }
      })
    })
    const [withCursor, withoutCursor] = [[], []] as [(List & { cursor: string })[], List[]]
    for (const list of lists) {
      const first = await list.ask()
      // A list of a fork's feature may need a role, or another id than that of a user.
      if (first.statusCode !== 200) continue
      const cursor: string | null = first.json().nextCursor ?? null
      if (cursor === null) withoutCursor.push(list)
      else {
        t.equal((await list.ask({ cursor })).statusCode, 200, list.title)
        withCursor.push({ ...list, cursor })
      }
    }
    t.ok(withCursor.length >= 14, `${withCursor.length} lists and orders have a second page`)
    for (const { url, sort, ask, title, cursor: own } of withCursor) {
      const foreign = withCursor.filter(
        other =>
          (other.url !== url || other.sort !== sort) &&
          !(isPosition(own) && isPosition(other.cursor)) &&
          !(isLogPosition(own) && isLogPosition(other.cursor)) &&
          !(other.sort === sort && LISTS_OF_USERS.includes(url) && LISTS_OF_USERS.includes(other.url)),
      )
      for (const cursor of [...forgedFrom(own), ...foreign.map(other => other.cursor)])
        errorsAt(t, await ask({ cursor }), 400, ['cursor'], `${title} ${cursor.slice(0, 40)}`)
    }
    for (const { ask, title } of withoutCursor)
      for (const cursor of forgedFrom(base64url(target.id)))
        errorsAt(t, await ask({ cursor }), 400, ['cursor'], `${title} ${cursor.slice(0, 40)}`)
    // A name may be any text, which is no more than a position.
    const cursor = base64url(JSON.stringify(['firstName', SQL, target.id]))
    const page = await app.inject({
      url: '/users',
      headers: bearer(user.token),
      query: { sort: 'firstName', cursor },
    })
    t.equal(page.statusCode, 200)
    t.equal(await accountStatus(app, target.token), 200, 'nobody is gone')
  })

  t.test('K7: every text of every JSON body is refused, or stored as it is', async t => {
    const wrong: string[] = []
    let stored = 0
    for (const { method, url, gate, body: schema } of routes.filter(each => !each.isPage && !each.isNdjson)) {
      if (schema === undefined) continue
      for (const text of HOSTILE)
        for (const [path, value] of withText(schema, text)) {
          await renew()
          const known = schema.properties ?? {}
          const payload = {
            ...(value as object),
            ...('email' in known && path !== '.email' && { email: freshEmail() }),
            ...('currentPassword' in known && path !== '.currentPassword' && { currentPassword: PASSWORD }),
          }
          const title = `${method} ${url}${path} ${JSON.stringify(text.slice(0, 8))}`
          const headers = headersOf(gate)
          const response = await app.inject({ method, url: urlOf(url), headers, payload })
          if (response.statusCode >= 500) wrong.push(`${title}: ${response.statusCode}`)
          if (response.statusCode >= 300 || response.body === '') continue
          const name = path.slice(path.lastIndexOf('.') + 1)
          for (const found of valuesOf(name, response.json())) {
            stored += 1
            if (JSON.stringify(found) !== JSON.stringify((value as Record<string, unknown>)[name]))
              wrong.push(`${title}: ${JSON.stringify(found)}`)
          }
        }
    }
    t.same(wrong, [])
    t.ok(stored > 20, `${stored} texts are stored`)
  })

  t.test('K7: so is every text of a line of an import, which goes on with the next line', async t => {
    const [schema] = routes.filter(({ isNdjson }) => isNdjson).map(({ body }) => body)
    const lines = HOSTILE.flatMap(text =>
      [...withText(schema ?? {}, text)].map(([path, value]) => ({
        ...(value as object),
        ...(path !== '.email' && { email: freshEmail() }),
        ...(path !== '.id' && { id: undefined }),
      })),
    )
    const results = await importAll(app, toLines([...lines, { email: freshEmail() }]))
    t.equal(results.length, lines.length + 2)
    t.match(results.slice(-2), [{ status: 'created' }, { status: 'finished' }])
    t.ok(results.slice(0, -1).every(({ status }) => ['created', 'failed'].includes(status)))
  })

  t.test('K7: text in forms, queries and the user agent is no error of the service', async t => {
    const encoded = [...HOSTILE.map(text => text.toWellFormed()).map(encodeURIComponent), '%ED%A0%80', '%ff']
    const wrong: string[] = []
    for (const { method, url, gate, isPage, body: schema, query } of routes) {
      const fields = isPage && schema?.properties ? Object.keys(schema.properties) : []
      for (const text of encoded) {
        await renew()
        const headers = isPage ? cookie(user.token) : headersOf(gate)
        const attempts: InjectOptions[] = [
          ...query.map(([name]) => ({ url: `${urlOf(url)}?${name}=${text}`, headers })),
          ...fields.map(field => ({
            url: urlOf(url),
            headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
            payload: fields.map(name => `${name}=${name === field ? text : 'a'}`).join('&'),
          })),
        ]
        for (const attempt of attempts) {
          const { statusCode, headers } = await app.inject({ method, ...attempt })
          if (statusCode >= 500 || /%00|%0[ad]|\0/i.test(String(headers.location)))
            wrong.push(`${method} ${attempt.url} ${attempt.payload}: ${statusCode} ${headers.location}`)
        }
      }
    }
    t.same(wrong, [])

    // Node reads a header as Latin-1: these are the bytes of UTF-8, and bytes that are none.
    for (const text of ['\ufdfa', '😀']
      .map(text => Buffer.from(text).toString('latin1'))
      .concat('\xff\xfe', 'x'.repeat(300))) {
      const { email } = await signUp(app)
      const signedIn = await app.inject({
        method: 'POST',
        url: '/account/sign-in',
        headers: { 'user-agent': text },
        payload: { email, password: PASSWORD },
      })
      const sessions = await app.inject({
        url: '/account/sessions',
        headers: bearer(signedIn.json().accessToken),
      })
      t.match(sessions.json().results[0], { userAgent: text.slice(0, 256) })
    }
  })

  t.test('K7: the audit log has every change, and none of the text', async t => {
    const events = await allEvents(app)
    const known = await app.inject({ url: '/admin/users?count=true&limit=1', headers: asAdmin })
    const opened = events.filter(({ type }) => ['user.signed-up', 'user.created'].includes(type))
    const deleted = events.filter(({ type }) => type === 'user.deleted')
    t.equal(opened.length - deleted.length, known.json().total)
    t.notMatch(JSON.stringify(events), /\\u0000|\\ud800|\ufdfa|c d e f/)
    t.equal((await signIn(app, bystander.email)).statusCode, 200, 'and no other user is harmed')
  })
})
