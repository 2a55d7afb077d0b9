/** `ids` and timestamp filters of GET /admin/users (filters; docs/design.md, "Account life cycle"). */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { asAdmin, bearer, manualClock, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { ADMIN_USER, hasShape, isPrivateJson } from '../support/response-shapes.ts'

const SORTS = ['createdAt', '-createdAt', 'firstName', '-firstName', 'lastName', '-lastName']
const TIMESTAMPS = ['createdAfter', 'createdBefore', 'lastRequestAfter', 'lastRequestBefore']
const MINUTE = 60_000

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const START = clock.now()
  const app = await build(t, { clock: clock.now, env: { RATE_LIMIT: 'off' } })

  type Page = { results: unknown[]; nextCursor: string | null; total: number }
  type Fields = Record<string, string | number>
  const get = (fields: Fields) => {
    const texts = Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)])
    return app.inject({ url: `/admin/users?${new URLSearchParams(texts)}`, headers: asAdmin })
  }

  // One user a minute. The order by name differs from the order of sign-up.
  const users: { id: string; email: string; token: string; firstName: string }[] = []
  for (let number = 0; number < 30; number += 1) {
    const firstName = `Name ${(number * 7) % 30}`
    users.push({ ...(await signUp(app, { firstName })), firstName })
    clock.advance(MINUTE)
  }
  const idOf = (number: number): string => users[number]?.id ?? ''
  const createdAt = (number: number, plus = 0): string =>
    new Date(START + number * MINUTE + plus).toISOString()

  /** The indexes of the users on one page, oldest first. The count confirms that no other user matches. */
  const found = async (fields: Fields): Promise<number[]> => {
    const response = await get({ sort: 'createdAt', limit: 100, count: 'true', ...fields })
    if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
    const { results, total }: { results: { id: string }[]; total: number } = response.json()
    const numbers = results.map(({ id }) => users.findIndex(user => user.id === id))
    t.equal(total, numbers.length, `count of ${JSON.stringify(fields)}`)
    return numbers
  }

  t.test('`ids` returns exactly those users on one page, in the order of the list', async t => {
    const response = await get({ ids: [...users.map(({ id }) => id), uuidv7()].join(',') })
    isPrivateJson(t, response, 200)
    const { results, nextCursor } = response.json()
    t.equal(nextCursor, null, 'more than the 20 of other lists')
    t.equal(response.headers.link, undefined)
    for (const user of results) hasShape(t, user, ADMIN_USER)
    t.strictSame(
      results.map(({ id }: { id: string }) => id),
      users.map(({ id }) => id).toReversed(),
      'the newest first, as everywhere',
    )
    t.strictSame(await found({ ids: `${idOf(3)},${idOf(1)}` }), [1, 3])
    t.strictSame(await found({ ids: uuidv7() }), [], 'unknown ids are ignored')
    t.strictSame(await found({ ids: `${idOf(4)},${idOf(4)},${idOf(4)}` }), [4], 'once')
    t.strictSame(await found({ ids: `${idOf(4).toUpperCase()},${idOf(4)}` }), [4], 'in any letter case')
  })

  t.test('an explicit limit overrides the one of `ids`, and pages continue', async t => {
    const ids = users.map(({ id }) => id).join(',')
    for (const sort of SORTS) {
      const whole: { id: string }[] = (await get({ ids, sort })).json().results
      t.equal(whole.length, users.length)
      const paged: { id: string }[] = []
      let response = await get({ ids, sort, limit: 7 })
      for (;;) {
        paged.push(...response.json().results)
        const link = /^<([^>]*)>; rel="next"$/.exec(String(response.headers.link))?.[1]
        t.equal(link === undefined, response.json().nextCursor === null)
        if (link === undefined) break
        response = await app.inject({ url: link, headers: asAdmin })
        t.equal(response.statusCode, 200)
      }
      t.strictSame(paged, whole, sort)
    }
  })

  t.test('more than 100 or invalid ids are an error under `ids`', async t => {
    const many = (length: number) => Array.from({ length }, () => uuidv7()).join(',')
    t.equal((await get({ ids: many(100) })).statusCode, 200)
    const twice = many(100)
    t.equal(
      (await get({ ids: `${twice},${twice.toUpperCase()}` })).statusCode,
      200,
      'those that are the same',
    )
    t.strictSame((await get({ ids: many(101) })).json(), { errors: { ids: ['must have at most 100 ids'] } })
    const id = idOf(0)
    for (const ids of `|,|${id},|,${id}|${id},,${id}|${id} ${id}|${id}, ${id}|${id};|x|*|${id}x|['${id}']`.split(
      '|',
    ))
      t.strictSame(
        (await get({ ids })).json(),
        { errors: { ids: ['must be valid ids, separated by commas'] } },
        JSON.stringify(ids),
      )
    errorsAt(t, await get({ ids: `${id}\0` }), 400, ['ids'], 'NUL')
    const both = await get({ ids: `${many(200)},x`, limit: 0 })
    errorsAt(t, both, 400, ['ids', 'limit'], 'every fault at once')
    t.equal(both.json().errors.ids.length, 2)
    const repeated = await app.inject({ url: `/admin/users?ids=${id}&ids=${id}`, headers: asAdmin })
    errorsAt(t, repeated, 400, ['ids'], 'a parameter is given once')
  })

  t.test('createdAfter and createdBefore are exclusive, to the millisecond', async t => {
    t.strictSame(await found({ createdAfter: createdAt(27) }), [28, 29])
    t.strictSame(await found({ createdAfter: createdAt(27, -1) }), [27, 28, 29])
    t.strictSame(await found({ createdBefore: createdAt(2) }), [0, 1])
    t.strictSame(await found({ createdBefore: createdAt(2, 1) }), [0, 1, 2])
    t.strictSame(await found({ createdAfter: createdAt(4), createdBefore: createdAt(8) }), [5, 6, 7])
    t.strictSame(
      await found({ createdAfter: createdAt(8), createdBefore: createdAt(4) }),
      [],
      'no users, no error',
    )
    t.strictSame(await found({ createdAfter: createdAt(5), createdBefore: createdAt(5) }), [])
  })

  t.test('a timestamp with a fraction of a millisecond is later than that millisecond', async t => {
    const within = createdAt(2).replace('Z', '001Z')
    t.strictSame(await found({ createdBefore: within }), [0, 1, 2])
    t.notOk((await found({ createdAfter: within })).includes(2))
    t.ok((await found({ createdAfter: createdAt(2, -1).replace('Z', '999Z') })).includes(2))
    t.strictSame(await found({ createdBefore: createdAt(2).replace('Z', '000Z') }), [0, 1])
  })

  t.test('every ISO 8601 spelling with a time zone is accepted', async t => {
    // The third user signed up at 2026-01-01T00:02:00.000Z.
    const spellings = [
      '2026-01-01T00:02:00Z|2026-01-01t00:02:00.0z|2026-01-01T00:02:00-00:00|2026-01-01T05:32:00+05:30',
      '2025-12-31T20:02:00.00000-04:00',
    ]
    for (const timestamp of spellings.join('|').split('|'))
      t.strictSame(await found({ createdBefore: timestamp }), [0, 1], timestamp)
    for (const timestamp of ['0000-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'])
      for (const field of TIMESTAMPS)
        t.equal((await get({ [field]: timestamp })).statusCode, 200, `${field}=${timestamp}`)
  })

  t.test('an invalid timestamp is an error under its own name', async t => {
    const wrong = [
      '|now|0|1767225600000|\0|Thu, 01 Jan 2026 00:00:00 GMT|\u0662026-01-01T00:00:00Z|2026-01-01',
      '2026-01-01T00:00Z|2026-01-01 00:00:00Z|2026-01-01T00:00:00 02:00|2026-01-01T00:00:00+02',
      '2026-01-01T00:00:00+0200|2026-02-29T00:00:00Z|2026-13-01T00:00:00Z|2026-01-01T24:00:00Z',
      '2026-01-01T00:00:61Z|2016-12-31T23:59:60Z|2026-01-01T00:00:00,5Z|2026-01-01T00:00:00.Z',
      '+002026-01-01T00:00:00Z|2026-01-01T00:00:00Z |2026-01-01T00:00:00|2026-01-01T25:00:00Z',
    ].join('|')
    for (const timestamp of wrong.split('|')) {
      const response = await get(Object.fromEntries(TIMESTAMPS.map(name => [name, timestamp])))
      errorsAt(t, response, 400, TIMESTAMPS, JSON.stringify(timestamp))
    }
    t.strictSame((await get({ createdAfter: 'yesterday' })).json(), {
      errors: { createdAfter: ['must be a timestamp with a time zone, such as 2026-01-31T09:30:00Z'] },
    })
    const url = `/admin/users?createdAfter=${createdAt(0)}&createdAfter=${createdAt(0)}`
    errorsAt(t, await app.inject({ url, headers: asAdmin }), 400, ['createdAfter'], 'twice')
  })

  t.test('lastRequestAfter and lastRequestBefore find active and inactive users', async t => {
    const at = clock.now()
    const ask = async (number: number) => {
      const headers = bearer(users[number]?.token ?? '')
      t.equal((await app.inject({ url: '/account', headers })).statusCode, 200)
    }
    await ask(10)
    clock.advance(MINUTE)
    await ask(20)
    // Filters use the stored timestamp, which is at most a second old.
    const active = async () => (await get({ lastRequestAfter: createdAt(0) })).json().results.length
    while ((await active()) < 2) await delay(50)
    const timestamp = (plus: number) => new Date(at + plus).toISOString()
    t.strictSame(await found({ lastRequestAfter: timestamp(0) }), [20], 'strictly later')
    t.strictSame(await found({ lastRequestAfter: timestamp(-1) }), [10, 20])
    t.strictSame(await found({ lastRequestAfter: timestamp(-1), lastRequestBefore: timestamp(MINUTE) }), [10])
    const everyUser = [...users.keys()]
    t.strictSame(
      await found({ lastRequestBefore: timestamp(MINUTE) }),
      everyUser.filter(number => number !== 20),
      'also who never made one',
    )
    t.strictSame(
      await found({ lastRequestBefore: timestamp(0) }),
      everyUser.filter(number => number !== 10 && number !== 20),
      'strictly earlier',
    )
    t.strictSame(await found({ lastRequestBefore: createdAt(3) }), [0, 1, 2], 'no user who did not exist yet')
    t.strictSame(await found({ lastRequestBefore: timestamp(0), createdAfter: createdAt(26) }), [27, 28, 29])
  })

  t.test('all filters combine with every sort, pages and count', async t => {
    for (const number of [5, 6, 25]) await updateUser(app, idOf(number), { disabled: true })
    const range = { createdAfter: createdAt(3), createdBefore: createdAt(26) }
    t.strictSame(await found({ ...range, disabled: 'true' }), [5, 6, 25])
    t.strictSame(await found({ ...range, disabled: 'true', lastRequestBefore: createdAt(20) }), [5, 6])
    t.strictSame(await found({ ...range, ids: [2, 6, 7].map(idOf).join(','), disabled: 'false' }), [7])
    t.strictSame(
      await found({ ...range, search: 'NAME 5' }),
      users.flatMap(({ firstName }, number) =>
        firstName === 'Name 5' && number > 3 && number < 26 ? [number] : [],
      ),
    )
    t.strictSame(await found({ ...range, email: users[7]?.email ?? '' }), [7])
    t.strictSame(await found({ ...range, email: users[27]?.email ?? '' }), [])
    t.strictSame(await found({ ids: idOf(8), email: users[7]?.email ?? '' }), [], 'two who are not the same')
    for (const sort of SORTS) {
      const whole = (await get({ ...range, sort, limit: 100 })).json().results
      t.equal(whole.length, 22)
      const paged: unknown[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Page = (
          await get({ ...range, sort, limit: 5, count: 'true', ...(cursor && { cursor }) })
        ).json()
        t.equal(page.total, 22)
        paged.push(...page.results)
        cursor = page.nextCursor
      }
      t.strictSame(paged, whole, sort)
    }
  })

  t.test('the filters are for administrators only', async t => {
    const headers = bearer(users[0]?.token ?? '')
    for (const name of ['ids', ...TIMESTAMPS]) {
      const url = `?${name}=${encodeURIComponent(name === 'ids' ? idOf(0) : createdAt(0))}`
      const response = await app.inject({ url: `/users${url}`, headers })
      t.strictSame(response.json(), { errors: { [name]: ['is not allowed'] } })
      t.equal(response.statusCode, 400)
      globalErrorOf(t, await app.inject({ url: `/admin/users${url}`, headers }), 401, 'no key')
      globalErrorOf(t, await app.inject({ url: `/admin/users?${name}=x` }), 401, '401 before 400')
    }
  })
})
