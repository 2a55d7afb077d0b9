/** GET /users and GET /admin/users: shape, limit, sort and keyset pagination (docs/design.md, "Contract"). Search: user-search.test.ts. */
import t from 'tap'
import { asAdmin, bearer, freshEmail, manualClock, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { ADMIN_USER, hasShape, isPrivateJson, PROFILE } from '../support/response-shapes.ts'

await onEveryEngine(t, async (t, { build }) => {
  type Row = Record<string, string | null>

  const SORTS = ['createdAt', '-createdAt', 'firstName', '-firstName', 'lastName', '-lastName']
  const clock = manualClock()
  const app = await build(t, { clock: clock.now, env: { RATE_LIMIT: 'off' } })
  const { token } = await signUp(app, { firstName: 'Reader' })
  const LISTS = { '/users': bearer(token), '/admin/users': asAdmin }

  // Equal names, null names and equal timestamps need the tie-break by id.
  for (let number = 0; number < 48; number += 1) {
    if (number % 4 === 0) clock.advance(1_000)
    const firstName = ['Anna', 'Bruno', 'Clara', undefined][number % 4]
    const lastName = number < 20 ? 'Same' : number < 40 ? undefined : `Name ${number}`
    await signUp(app, { ...(firstName && { firstName }), ...(lastName && { lastName }) })
  }
  const TOTAL = 49

  const get = (path: string, headers: Record<string, string>) => app.inject({ url: path, headers })
  const query = (fields: Record<string, string | number | null>) =>
    new URLSearchParams(
      Object.entries(fields).map(([key, value]): [string, string] => [key, String(value)]),
    ).toString()

  /** All rows of a list, page by page. `between` runs after each page. */
  const walk = async (
    path: string,
    headers: Record<string, string>,
    fields: Record<string, string | number>,
    between?: () => Promise<unknown>,
  ): Promise<Row[]> => {
    const rows: Row[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const response = await get(`${path}?${query(cursor === '' ? fields : { ...fields, cursor })}`, headers)
      if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
      const page: { results: Row[]; nextCursor: string | null } = response.json()
      rows.push(...page.results)
      cursor = page.nextCursor
      await between?.()
    }
    return rows
  }

  t.test('GET /users shows profiles and never an e-mail', async t => {
    const response = await get('/users?limit=100', bearer(token))
    isPrivateJson(t, response, 200)
    t.strictSame(Object.keys(response.json()).sort(), ['nextCursor', 'results'])
    for (const profile of response.json().results) hasShape(t, profile, PROFILE)
    t.notMatch(response.body, '@')
  })

  t.test('GET /admin/users shows AdminUsers and needs no user token (§5.2.4)', async t => {
    const response = await get('/admin/users?limit=100', asAdmin)
    isPrivateJson(t, response, 200)
    t.strictSame(Object.keys(response.json()).sort(), ['nextCursor', 'results'])
    for (const user of response.json().results) hasShape(t, user, ADMIN_USER)
    t.match(response.json().results[0], { disabled: false, emailVerified: false, email: /@example\.com$/ })
  })

  t.test('HEAD works like GET', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      const head = await app.inject({ method: 'HEAD', url: `${url}?limit=2`, headers })
      isPrivateJson(t, head, 200)
      t.equal(head.body, '')
      t.match(head.headers.link, /rel="next"/)
      t.equal((await app.inject({ method: 'HEAD', url })).statusCode, 401, `${url} without its gate's key`)
      globalErrorOf(t, await app.inject({ url: `${url}?limit=0` }), 401, `${url}: 401 before 400`)
    }
  })

  t.test('limit is 1 to 100, 20 by default', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      t.equal((await get(url, headers)).json().results.length, 20, 'default')
      t.equal((await get(`${url}?limit=1`, headers)).json().results.length, 1)
      t.equal((await get(`${url}?limit=100`, headers)).json().results.length, TOTAL)
      for (const limit of [
        '0',
        '101',
        '-1',
        '1.5',
        'x',
        '',
        '1%00',
        '9'.repeat(400),
        'NaN',
        'Infinity',
        'null',
      ])
        errorsAt(t, await get(`${url}?limit=${limit}`, headers), 400, ['limit'], `limit=${limit.slice(0, 9)}`)
      errorsAt(t, await get(`${url}?limit=1&limit=2`, headers), 400, ['limit'], 'limit twice')
    }
  })

  t.test('unknown query properties and sorts are rejected together', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      for (const sort of [
        '',
        '-',
        'email',
        'id',
        '--createdAt',
        'CreatedAt',
        'createdAt,id',
        'updatedAt',
        '+firstName',
      ])
        errorsAt(t, await get(`${url}?${query({ sort })}`, headers), 400, ['sort'], `sort=${sort}`)
      const response = await get(`${url}?limit=0&sort=x&foo=1&cursor=bad&toString=1`, headers)
      const fields = Object.keys(response.json().errors)
      t.equal(response.statusCode, 400)
      for (const field of ['limit', 'sort', 'foo', 'toString']) t.ok(fields.includes(field), field)
      t.strictSame(response.json().errors.foo, ['is not allowed'])
    }
    for (const field of ['email', 'disabled', 'count'])
      errorsAt(t, await get(`/users?${field}=true`, bearer(token)), 400, [field], `/users?${field}`)
  })

  t.test('every sort returns each user exactly once, in its direction', async t => {
    for (const [url, headers] of Object.entries(LISTS))
      for (const sort of SORTS)
        for (const limit of [1, 7, 48, 49, 50]) {
          if (limit === 1 && url === '/users') continue
          const rows = await walk(url, headers, { sort, limit })
          const title = `${url} sort=${sort} limit=${limit}`
          t.equal(rows.length, TOTAL, title)
          t.equal(new Set(rows.map(({ id }) => id)).size, TOTAL, `${title}: once`)
          const values = rows.map(row => row[sort.replace('-', '')])
          const known = values.filter(value => value !== null && value !== undefined)
          const ordered = sort.startsWith('-') ? known.toSorted().reverse() : known.toSorted()
          t.strictSame(known, ordered, `${title}: in order`)
          const nulls = values.length - known.length
          const ends = [values.slice(0, nulls), values.slice(values.length - nulls)]
          t.ok(
            ends.some(end => end.every(value => value === null)),
            `${title}: null names together`,
          )
        }
  })

  t.test('pages of any size are slices of one order, newest first by default', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      for (const sort of SORTS)
        t.strictSame(
          await walk(url, headers, { sort, limit: 5 }),
          (await get(`${url}?${query({ sort, limit: 100 })}`, headers)).json().results,
          `${url} sort=${sort}`,
        )
      const newest = await get(`${url}?sort=-createdAt&limit=100`, headers)
      t.strictSame((await get(`${url}?limit=100`, headers)).json(), newest.json(), `${url}: default`)
    }
  })

  t.test('only the last page has a null nextCursor and no Link', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      for (const limit of [TOTAL, TOTAL + 1, 100]) {
        const response = await get(`${url}?limit=${limit}`, headers)
        t.equal(response.json().nextCursor, null, `limit=${limit}`)
        t.equal(response.headers.link, undefined)
      }
      const response = await get(`${url}?limit=${TOTAL - 1}`, headers)
      t.type(response.json().nextCursor, 'string', 'one is left')
      const none = await get(`${url}?search=no%20such%20name`, headers)
      t.strictSame(none.json(), { results: [], nextCursor: null })
      t.equal(none.headers.link, undefined)
    }
  })

  t.test('the Link header leads to the same pages as nextCursor (RFC 8288)', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      const fields = { limit: 5, sort: '-firstName', search: 'anna' }
      let response = await get(`${url}?${query(fields)}`, headers)
      let pages = 1
      while (response.json().nextCursor !== null) {
        const target = /^<([^>]*)>; rel="next"$/.exec(String(response.headers.link))?.[1] ?? ''
        const next = new URL(target, `http://localhost${url}`)
        t.equal(next.pathname, url)
        const byCursor = await get(
          `${url}?${query({ ...fields, cursor: response.json().nextCursor })}`,
          headers,
        )
        response = await get(next.pathname + next.search, headers)
        t.strictSame(response.json(), byCursor.json(), `${url}: page ${pages + 1}`)
        pages += 1
      }
      t.equal(pages, 3, 'twelve Annas')
      t.equal(response.headers.link, undefined)
    }
  })

  t.test('a cursor of another list is a 400 under `cursor`', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      const page = async (fields: Record<string, string | number>) => get(`${url}?${query(fields)}`, headers)
      const good: string = (await page({ sort: 'firstName', limit: 7 })).json().nextCursor
      const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const forged = [
        {},
        [],
        null,
        5,
        ['firstName'],
        ['firstName', {}, {}],
        { sort: 'firstName', id: [] },
      ].map(json)
      for (const cursor of [
        '',
        'x',
        '\0',
        '😀',
        'null',
        '1',
        good.slice(0, -4),
        good.slice(4),
        'A'.repeat(3_000),
        ...forged,
      ])
        errorsAt(
          t,
          await page({ sort: 'firstName', cursor }),
          400,
          ['cursor'],
          JSON.stringify(cursor.slice(0, 40)),
        )
      for (const sort of SORTS.filter(sort => sort !== 'firstName'))
        errorsAt(t, await page({ sort, cursor: good }), 400, ['cursor'], `cursor of firstName at ${sort}`)
      errorsAt(t, await page({ cursor: good }), 400, ['cursor'], 'cursor of firstName at the default sort')
      errorsAt(
        t,
        await get(`${url}?cursor=${good}&cursor=${good}&sort=firstName`, headers),
        400,
        ['cursor'],
        'twice',
      )
      for (let index = 0; index < good.length; index += 1) {
        const changed = good.slice(0, index) + (good[index] === 'Q' ? 'h' : 'Q') + good.slice(index + 1)
        const { statusCode } = await page({ sort: 'firstName', cursor: changed })
        t.ok(statusCode === 200 || statusCode === 400, `character ${index} changed: ${statusCode}`)
      }
    }
  })

  t.test('existing users are seen exactly once while others are added', async t => {
    for (const [url, headers] of Object.entries(LISTS))
      for (const sort of SORTS) {
        const before = (await walk(url, headers, { limit: 100 })).map(({ id }) => id)
        let number = 0
        const rows = await walk(url, headers, { sort, limit: 20 }, async () => {
          number += 1
          if (number > 5) return
          clock.advance(number)
          const firstName = ['Aaron', 'Anna', 'Bruno', 'Zoe', undefined][number % 5]
          await signUp(app, { email: freshEmail('added'), lastName: 'Same', ...(firstName && { firstName }) })
        })
        const seen = rows.map(({ id }) => id)
        t.equal(new Set(seen).size, seen.length, `${url} sort=${sort}: none twice`)
        t.strictSame(
          before.filter(id => !seen.includes(id)),
          [],
          `${url} sort=${sort}: none missing`,
        )
      }
  })
})
