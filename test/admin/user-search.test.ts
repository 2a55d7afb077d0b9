/** `search`, and for administrators `email`, `disabled` and `count`, of the user lists (docs/design.md, "Contract"). */
import t from 'tap'
import { asAdmin, bearer, freshEmail, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import type { Assert } from '../support/response-shapes.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { env: { RATE_LIMIT: 'off' } })
  const { token } = await signUp(app, { firstName: 'Reader' })
  const LISTS = { '/users': bearer(token), '/admin/users': asAdmin }

  const get = (url: string, headers: Record<string, string>, fields: Record<string, string | number>) => {
    const query = new URLSearchParams(
      Object.entries(fields).map(([key, value]): [string, string] => [key, String(value)]),
    )
    return app.inject({ url: `${url}?${query}`, headers })
  }

  /** The sorted names that a search finds. */
  const found = async (
    url: keyof typeof LISTS,
    fields: Record<string, string | number>,
  ): Promise<string[]> => {
    const response = await get(url, LISTS[url], { limit: 100, ...fields })
    if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
    const results: { firstName: string; lastName: string }[] = response.json().results
    return results.map(({ firstName, lastName }) => firstName ?? lastName).sort()
  }
  const bothFind = async (t: Assert, search: string, expected: string[]): Promise<void> => {
    for (const url of ['/users', '/admin/users'] as const)
      t.strictSame(
        await found(url, { search }),
        expected.toSorted(),
        `${url}?search=${JSON.stringify(search)}`,
      )
  }

  t.test('search matches the start of either name, in any letter case', async t => {
    await signUp(app, { firstName: 'Marianne', lastName: 'Tester' })
    await signUp(app, { firstName: 'MARIO', lastName: 'Marianne' })
    await signUp(app, { lastName: 'marigold' })
    await signUp(app, { firstName: 'Rosmari' })
    for (const search of ['mari', 'MARI', 'Mari', 'mArI'])
      await bothFind(t, search, ['Marianne', 'MARIO', 'marigold'])
    await bothFind(t, 'mariann', ['Marianne', 'MARIO'])
    await bothFind(t, 'arianne', [])
    await bothFind(t, 'marianne x', [])
  })

  t.test('search ignores case in every script', async t => {
    const names = ['Éloïse', 'ЖДАНА', 'ωμέγα', 'Ñandú', 'Øyvind', 'Łukasz', 'Ծովինար', '𐐔𐐯𐑅𐐨𐑉𐐯𐐻']
    for (const firstName of names) await signUp(app, { firstName })
    for (const name of names)
      for (const search of [name, name.toLowerCase(), name.toUpperCase(), [...name].slice(0, 2).join('')])
        for (const spelling of [search, search.toLowerCase(), search.toUpperCase()])
          await bothFind(t, spelling, [name])
  })

  // Unspecified: whether `e` matches a name that starts with an `e` and a combining accent.
  const graphemes = new Intl.Segmenter()

  t.test('every name is found by itself and by each of its prefixes', async t => {
    const names = [
      'İpek',
      'ıssız',
      'ßeta',
      'ǅemal',
      'ﬁona',
      'ΟΔΟΣ',
      'e\u0301tienne',
      '山田',
      'שלום',
      '👩‍👩‍👧 family',
    ]
    for (const firstName of names) await signUp(app, { firstName })
    for (const name of names) {
      const characters = Array.from(graphemes.segment(name), ({ segment }) => segment)
      for (let length = 1; length <= characters.length; length += 1) {
        const search = characters.slice(0, length).join('')
        if (search.trim() !== search) continue
        const hits = await found('/users', { search })
        t.ok(hits.includes(name), `${JSON.stringify(search)} finds ${name}: ${hits}`)
      }
    }
  })

  t.test('a prefix matches any following text, up to the last code point', async t => {
    const names = ['Zed', 'Zed\u{10ffff}', 'Zed\uffff', 'Zed😀', 'Zed\u00ad', 'Zed ']
    for (const name of names) await signUp(app, { firstName: `${name}x` })
    await bothFind(
      t,
      'zed',
      names.map(name => `${name}x`),
    )
    await bothFind(t, 'Zed\u{10ffff}', ['Zed\u{10ffff}x'])
    await bothFind(t, 'Zed\uffff', ['Zed\uffffx'])
  })

  t.test('no character of a search is a wildcard', async t => {
    const names = ['%percent', '_underscore', '\\backslash', '*star', '?mark', '[a-z]', "'quote", '"double']
    for (const firstName of names) await signUp(app, { firstName })
    for (const name of names) {
      await bothFind(t, name.slice(0, 1), [name])
      await bothFind(t, name, [name])
    }
    for (const search of ['m%o', 'm_rio', 'mar%', 'mar*', "' OR 1=1 --"]) await bothFind(t, search, [])
  })

  t.test('only the admin search includes e-mails', async t => {
    const email = freshEmail('Searchable').toLowerCase()
    await signUp(app, { email, firstName: 'Unlike' })
    for (const search of ['searchable', 'SEARCHABLE', email, email.toUpperCase()]) {
      t.strictSame(await found('/users', { search }), [], search)
      t.strictSame(await found('/admin/users', { search }), ['Unlike'], search)
    }
    t.strictSame(await found('/admin/users', { search: 'example.com' }), [], 'its start alone')
  })

  t.test('unusual searches find nothing or are a 400 under `search`', async t => {
    for (const [url, headers] of Object.entries(LISTS)) {
      for (const search of ['', ' ', '\0', 'a\0', '\ufffd', 'x'.repeat(129), 'x'.repeat(5_000)]) {
        const response = await get(url, headers, { search })
        const title = `${url}?search=${JSON.stringify(search.slice(0, 9))}`
        if (response.statusCode !== 200) errorsAt(t, response, 400, ['search'], title)
      }
      const twice = await app.inject({ url: `${url}?search=a&search=b`, headers })
      errorsAt(t, twice, 400, ['search'], 'twice')
    }
  })

  t.test('search combines with pages: every match once, in every sort', async t => {
    for (let number = 0; number < 9; number += 1)
      await signUp(app, { firstName: number % 2 ? 'Paginate' : 'PAGINATE', lastName: `P${number % 3}` })
    for (const [url, headers] of Object.entries(LISTS))
      for (const sort of ['createdAt', '-createdAt', 'firstName', '-firstName', 'lastName', '-lastName']) {
        const ids: string[] = []
        let cursor: string | undefined
        let pages = 0
        do {
          const fields = { search: 'paginate', sort, limit: 3, ...(cursor && { cursor }) }
          const { results, nextCursor } = (await get(url, headers, fields)).json()
          ids.push(...results.map(({ id }: { id: string }) => id))
          cursor = nextCursor ?? undefined
          pages += 1
        } while (cursor !== undefined)
        t.equal(pages, 3, `${url} sort=${sort}: a full last page is the last`)
        t.equal(new Set(ids).size, 9)
        t.equal(ids.length, 9)
      }
  })

  t.test('the admin list filters by canonical e-mail', async t => {
    const { id, email } = await signUp(app)
    await signUp(app, { email: `x${email}` })
    for (const spelling of [email, email.toUpperCase(), ` ${email} `]) {
      const { results } = (await get('/admin/users', asAdmin, { email: spelling })).json()
      t.match(results, [{ id, email }], spelling)
      t.equal(results.length, 1)
    }
    const unknown = await get('/admin/users', asAdmin, { email: freshEmail() })
    t.strictSame(unknown.json(), { results: [], nextCursor: null })
  })

  t.test('the admin list filters by disabled', async t => {
    const [one, other] = [
      await signUp(app, { firstName: 'Filtered' }),
      await signUp(app, { firstName: 'Filtered' }),
    ]
    await updateUser(app, one.id, { disabled: true })
    const ids = async (fields: Record<string, string>) => {
      const { results } = (await get('/admin/users', asAdmin, { search: 'filtered', ...fields })).json()
      return results.map(({ id, disabled }: { id: string; disabled: boolean }) => [id, disabled])
    }
    t.strictSame(await ids({ disabled: 'true' }), [[one.id, true]])
    t.strictSame(await ids({ disabled: 'false' }), [[other.id, false]])
    t.equal((await ids({})).length, 2, 'both without the filter')
    t.strictSame(await ids({ disabled: 'true', email: other.email }), [], 'filters add up')
    for (const disabled of ['', 'yes', 'TRUE', 'x']) {
      errorsAt(t, await get('/admin/users', asAdmin, { disabled }), 400, ['disabled'], `disabled=${disabled}`)
      errorsAt(
        t,
        await get('/admin/users', asAdmin, { count: disabled }),
        400,
        ['count'],
        `count=${disabled}`,
      )
    }
  })

  t.test('count=true adds the total of all matches', async t => {
    for (let number = 0; number < 5; number += 1) await signUp(app, { firstName: 'Counted' })
    const page = async (fields: Record<string, string | number>) =>
      (await get('/admin/users', asAdmin, { search: 'counted', limit: 2, ...fields })).json()
    const first = await page({ count: 'true' })
    t.strictSame(Object.keys(first).sort(), ['nextCursor', 'results', 'total'])
    t.equal(first.total, 5)
    t.equal((await page({ count: 'true', cursor: first.nextCursor })).total, 5, 'the same on every page')
    t.equal((await page({ count: 'true', disabled: 'true' })).total, 0)
    for (const fields of [{}, { count: 'false' }])
      t.strictSame(Object.keys(await page(fields)).sort(), ['nextCursor', 'results'])
  })

  t.test('count=approximate is exact for few matches', async t => {
    for (let number = 0; number < 5; number += 1) await signUp(app, { firstName: 'Estimated' })
    const page = async (fields: Record<string, string | number>) =>
      (await get('/admin/users', asAdmin, { count: 'approximate', limit: 2, ...fields })).json()
    const first = await page({ search: 'estimated' })
    t.strictSame(Object.keys(first).sort(), ['approximateTotal', 'nextCursor', 'results'])
    t.equal(first.approximateTotal, 5)
    t.equal((await page({ search: 'estimated', disabled: 'true' })).approximateTotal, 0)
    const ids = first.results.map(({ id }: { id: string }) => id).join()
    t.equal((await page({ ids })).approximateTotal, 2)
    const { total } = (await get('/admin/users', asAdmin, { count: 'true' })).json()
    t.equal((await page({})).approximateTotal, total)
  })
})
