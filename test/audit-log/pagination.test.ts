/**
 * GET /admin/events: filters, keyset pagination and cursors against a model of the log (docs/design.md, "Contract" and "Account life
 * cycle").
 */
import t from 'tap'
import {
  type AuditLine,
  allEvents,
  createUser,
  getEvents,
  impersonate,
  UNKNOWN_ID,
} from '../support/admin-routes.ts'
import { asAdmin, bearer, manualClock, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const app = await build(t, { clock: clock.now })
  const iso = (at: number) => new Date(at).toISOString()
  const START = clock.now()

  /** The recorded actions, oldest first. */
  const model: { userId: string; type: string; at: number }[] = []
  const note = (userId: string, type: string) => model.push({ userId, type, at: clock.now() })
  const users: string[] = []
  for (let number = 0; number < 5; number += 1) {
    clock.advance(1_000)
    const { id } = await createUser(app)
    users.push(id)
    note(id, 'user.created')
  }
  for (let number = 0; number < 40; number += 1) {
    // Three events per timestamp.
    if (number % 3 === 0) clock.advance(1_000)
    const id = String(users[(number * 7) % users.length])
    if (number % 4 === 0) await impersonate(app, id)
    else await updateUser(app, id, { lastName: `Name ${number}` })
    note(id, number % 4 === 0 ? 'user.impersonated' : 'user.changed')
  }
  const END = clock.now()
  const plain = (events: readonly AuditLine[]) =>
    events.map(({ userId, type, at }) => `${at} ${type} ${userId}`)
  const byTimeOnly = (lines: readonly string[]) => lines.toSorted()

  t.test('the list has the whole log, newest first', async t => {
    const all = await allEvents(app)
    const expected = model.toReversed().map(({ userId, type, at }) => `${iso(at)} ${type} ${userId}`)
    t.strictSame(byTimeOnly(plain(all)), byTimeOnly(expected))
    const timestamps = all.map(({ at }) => at)
    t.strictSame(timestamps, timestamps.toSorted().reverse())
    t.equal(new Set(all.map(({ id }) => id)).size, model.length)
  })

  t.test('every combination of filters agrees with the model', async t => {
    const timestamps = [undefined, START, START + 3_000, START + 9_000, START + 9_001, END - 1, END, END + 1]
    for (const userId of [undefined, users[0], users[3], UNKNOWN_ID])
      for (const type of [undefined, 'user.created', 'user.changed', 'user.impersonated', 'user.deleted'])
        for (const after of timestamps)
          for (const before of [undefined, START + 9_000, END]) {
            const expected = model.filter(
              event =>
                (userId === undefined || event.userId === userId) &&
                (type === undefined || event.type === type) &&
                (after === undefined || event.at > after) &&
                (before === undefined || event.at < before),
            )
            const query = {
              ...(userId !== undefined && { userId }),
              ...(type !== undefined && { type }),
              ...(after !== undefined && { after: iso(after) }),
              ...(before !== undefined && { before: iso(before) }),
            }
            const lines = expected.map(({ userId, type, at }) => `${iso(at)} ${type} ${userId}`)
            const found = plain(await allEvents(app, { ...query, limit: 7 }))
            t.strictSame(byTimeOnly(found), byTimeOnly(lines), JSON.stringify(query))
          }
  })

  t.test('pages of any size are slices of one order', async t => {
    const all = await allEvents(app)
    for (const limit of [1, 2, 7, 44, 45, 46, 100])
      t.strictSame(await allEvents(app, { limit }), all, `limit=${limit}`)
    t.equal((await getEvents(app)).json().results.length, 20, 'default')
  })

  t.test('only the last page has a null nextCursor and no Link; Link leads to the next page', async t => {
    for (const limit of [45, 46, 100]) {
      const response = await getEvents(app, { limit })
      t.equal(response.json().nextCursor, null)
      t.equal(response.headers.link, undefined)
    }
    const query = { limit: 4, userId: String(users[1]), type: 'user.changed', after: iso(START) }
    let response = await getEvents(app, query)
    let pages = 1
    while (response.json().nextCursor !== null) {
      const target = /^<([^>]*)>; rel="next"$/.exec(String(response.headers.link))?.[1] ?? ''
      const next = new URL(target, 'http://localhost/admin/events')
      t.equal(next.pathname, '/admin/events')
      const byCursor = await getEvents(app, { ...query, cursor: response.json().nextCursor })
      response = await app.inject({ url: next.pathname + next.search, headers: asAdmin })
      t.strictSame(response.json(), byCursor.json())
      t.ok(response.json().results.every((each: AuditLine) => each.userId === users[1]))
      pages += 1
    }
    t.ok(pages > 1)
    t.equal(response.headers.link, undefined)
    t.strictSame((await getEvents(app, { userId: UNKNOWN_ID })).json(), { results: [], nextCursor: null })
  })

  t.test('timestamps are exclusive bounds in any time zone', async t => {
    const at = model[2]?.at ?? 0
    const query = { userId: String(users[2]), type: 'user.created' }
    const count = async (bounds: Record<string, string>) =>
      (await getEvents(app, { ...query, ...bounds })).json().results.length
    t.equal(await count({ after: iso(at) }), 0, 'after is later')
    t.equal(await count({ after: iso(at - 1) }), 1)
    t.equal(await count({ before: iso(at) }), 0, 'before is earlier')
    t.equal(await count({ before: iso(at + 1) }), 1)
    t.equal(await count({ after: iso(at - 1), before: iso(at + 1) }), 1)
    t.equal(await count({ after: iso(at + 1), before: iso(at - 1) }), 0)
    const zoned = (timestamp: number) => iso(timestamp + 2 * 3_600_000).replace('Z', '+02:00')
    t.equal(await count({ after: zoned(at) }), 0)
    t.equal(await count({ after: zoned(at - 1), before: zoned(at + 1) }), 1)
  })

  t.test('invalid and unknown query properties are rejected by name', async t => {
    const bad: Record<string, string[]> = {
      limit: ['0', '101', '-1', 'x', '', '1.5'],
      userId: ['', 'x', 'a\0b', '01890000'],
      type: ['', 'user', 'USER.CREATED', 'user.created,user.changed', '\0'],
      after: [
        '',
        'x',
        'yesterday',
        '2026-13-01T00:00:00Z',
        '2026-02-30T00:00:00Z',
        '2026-01-01',
        '1767225600',
      ],
      before: ['', 'x', '2026-01-01T00:00:00', '9'.repeat(400)],
      sort: ['createdAt'],
      search: ['x'],
      actor: ['x'],
    }
    for (const [field, values] of Object.entries(bad))
      for (const value of values)
        errorsAt(t, await getEvents(app, { [field]: value }), 400, [field], `${field}=${value.slice(0, 30)}`)
    for (const extreme of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'])
      for (const field of ['after', 'before'])
        t.equal((await getEvents(app, { [field]: extreme })).statusCode, 200, `${field}=${extreme}`)
    const twice = `/admin/events?userId=${users[0]}&userId=${users[1]}`
    errorsAt(t, await app.inject({ url: twice, headers: asAdmin }), 400, ['userId'], 'twice')
  })

  t.test('cursors of other lists are a 400', async t => {
    const good: string = (await getEvents(app, { limit: 1 })).json().nextCursor
    const { token, id } = await signUp(app)
    clock.advance(1_000)
    const foreign: string[] = []
    for (const sort of ['createdAt', '-createdAt', 'firstName', '-lastName']) {
      const url = `?limit=1&sort=${sort}`
      for (const [path, headers] of [
        ['/admin/users', asAdmin],
        ['/users', bearer(token)],
      ] as const) {
        foreign.push((await app.inject({ url: path + url, headers })).json().nextCursor)
        const crossed = await app.inject({ url: `${path}${url}&cursor=${good}`, headers })
        errorsAt(t, crossed, 400, ['cursor'], `an event's cursor at ${path}${url}`)
      }
    }
    const encoded = (text: string) => Buffer.from(text).toString('base64url')
    for (const cursor of [
      ...foreign,
      ...['', 'x', '\0', '😀', 'null', '1', 'A'.repeat(3_000), good.slice(0, -4), good.slice(4), good + good],
      ...[id, encoded('x'), encoded('{}'), encoded(`${id}x`), encoded(`${id}\n`), encoded(`' OR 1=1 --`)],
    ])
      errorsAt(t, await getEvents(app, { cursor }), 400, ['cursor'], JSON.stringify(cursor).slice(0, 50))
    for (let index = 0; index < good.length; index += 1) {
      const changed = good.slice(0, index) + (good[index] === 'Q' ? 'h' : 'Q') + good.slice(index + 1)
      const { statusCode } = await getEvents(app, { cursor: changed })
      t.ok(statusCode === 200 || statusCode === 400, `character ${index} changed: ${statusCode}`)
    }
  })

  t.test(
    'existing events are seen exactly once while others are added, even with equal timestamps',
    async t => {
      for (const advance of [0, 1]) {
        const before = (await allEvents(app)).map(({ id }) => id)
        let number = 0
        const seen = (
          await allEvents(app, { limit: 5 }, async () => {
            clock.advance(advance)
            number += 1
            await updateUser(app, String(users[number % 5]), { lastName: `Added ${number}` })
          })
        ).map(({ id }) => id)
        t.ok(number > 5)
        t.strictSame(
          seen.filter(id => before.includes(id)),
          before,
          'in the same order',
        )
        t.equal(new Set(seen).size, seen.length, 'none twice')
        if (advance > 0) t.strictSame(seen, before, 'what is newer comes before the first page')
      }
    },
  )
})
