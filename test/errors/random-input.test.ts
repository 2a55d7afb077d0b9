/** Properties of any input: no 5xx, the error body, no user identified by random tokens, no other user changed. */
import fc from 'fast-check'
import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { nameViolations } from '#http/validation/formats'
import { asAdmin, bearer, freshEmail, PASSWORD, signUp } from '../support/build.ts'
import { codePoint } from '../support/code-points.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { headerText, jsonBody, query, rawBody } from '../support/hostile-input.ts'
import { inShortRun } from '../support/run.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  /** Each run is one or two requests. fast-check prints the seed and path of a failure. */
  const RUNS = { numRuns: inShortRun(50, 150) }

  const app = await build(t)
  /** Users that no request of this file may change. */
  const bystanders = [
    await signUp(app, { firstName: 'Ada', lastName: 'Λάβλεϊς' }),
    await signUp(app, { firstName: null }),
    await signUp(app),
  ]
  const mine = await signUp(app)
  const theirs = await signUp(app)

  const everyUser = async (): Promise<string[]> => {
    const found: string[] = []
    for (const { email } of bystanders) {
      found.push((await app.inject({ url: `/admin/users?email=${email}`, headers: asAdmin })).body)
    }
    return found
  }

  const before = await everyUser()

  const isErrorBody = (body: unknown): boolean => {
    if (typeof body !== 'object' || body === null || Object.keys(body).join() !== 'errors') return false
    const { errors } = body as { errors: unknown }
    if (typeof errors !== 'object' || errors === null || Array.isArray(errors)) return false
    const lists = Object.values(errors)
    return lists.length > 0 && lists.every(isMessages)
  }

  const isMessages = (list: unknown): boolean =>
    Array.isArray(list) && list.length > 0 && list.every(message => typeof message === 'string')

  /** @throws the difference from an expected response, for fast-check to report with the input. */
  const check = (response: LightMyRequestResponse, statuses: readonly number[]): void => {
    const { statusCode, body } = response
    if (!statuses.includes(statusCode)) throw new Error(`status ${statusCode}: ${body}`)
    if (statusCode >= 400 && !isErrorBody(JSON.parse(body))) throw new Error(`not the errors body: ${body}`)
  }

  const ROUTES: readonly { title: string; request: InjectOptions; statuses: readonly number[] }[] = [
    {
      title: 'POST /account/sign-up',
      request: { method: 'POST', url: '/account/sign-up' },
      statuses: [201, 400, 409],
    },
    {
      title: 'POST /account/sign-in',
      request: { method: 'POST', url: '/account/sign-in' },
      statuses: [400, 401],
    },
    {
      title: 'PUT /account',
      request: { method: 'PUT', url: '/account', headers: bearer(mine.token) },
      statuses: [200, 400],
    },
    {
      title: 'PUT /admin/users/:id',
      request: { method: 'PUT', url: `/admin/users/${theirs.id}`, headers: asAdmin },
      statuses: [200, 400, 409],
    },
  ]

  for (const { title, request, statuses } of ROUTES) {
    const send = async (payload: string | Buffer): Promise<void> => {
      const headers = { ...request.headers, 'content-type': 'application/json' }
      check(await app.inject({ ...request, headers, payload }), statuses)
    }
    t.test(`any JSON body to ${title} is handled (§7)`, async () => {
      await fc.assert(fc.asyncProperty(jsonBody, send), RUNS)
    })
    t.test(`any bytes as the body of ${title} are handled (§7)`, async () => {
      await fc.assert(fc.asyncProperty(rawBody, send), RUNS)
    })
  }

  for (const [url, headers] of [
    ['/users', bearer(mine.token)],
    ['/admin/users', asAdmin],
  ] as const) {
    t.test(`any query to GET ${url} is handled (§7)`, async () => {
      const property = fc.asyncProperty(query, async text => {
        const response = await app.inject({ url: `${url}?${text}`, headers })
        check(response, [200, 400])
        if (response.statusCode === 200 && !Array.isArray(response.json().results)) throw new Error('no list')
      })
      await fc.assert(property, RUNS)
    })
  }

  const [head = '', body = ''] = mine.token.split('.')
  const nearToken = fc.oneof(
    headerText,
    headerText
      .map(value => `${mine.token.slice(0, -1)}${value}`)
      .filter(value => value.trim() !== mine.token),
    headerText.map(value => `${head}.${body}.${value}`),
    fc.base64String().map(value => `${head}.${value}.${value}`),
  )

  t.test('random Cookie and Authorization headers identify no user (§5.1.3, §5.1.4)', async () => {
    const credentials = fc.oneof(
      nearToken.map(value => ({ cookie: `ACCESS_TOKEN=${value.replaceAll(';', '')}` })),
      headerText.map(value => ({ cookie: value })),
      nearToken.map(value => ({ authorization: `Bearer ${value}` })),
      headerText.map(value => ({ authorization: value })),
      fc.tuple(headerText, headerText).map(([cookie, authorization]) => ({ cookie, authorization })),
    )
    const property = fc.asyncProperty(credentials, async headers => {
      check(await app.inject({ url: '/account', headers }), [401])
      check(await app.inject({ url: '/health', headers }), [200])
    })
    await fc.assert(property, { numRuns: inShortRun(100, 400) })
  })

  t.test('random path segments as :id find no user (§4)', async () => {
    const segment = fc.oneof(
      fc.string({ unit: codePoint, minLength: 1 }).map(encodeURIComponent),
      fc.webSegment(),
      fc.uuid(),
      fc.constantFrom(
        '%',
        '%zz',
        '%00',
        '%ff',
        '..',
        '.',
        '%2e%2e',
        '*',
        ':id',
        '__proto__',
        'x'.repeat(5_000),
      ),
      fc.constantFrom(theirs.id.slice(1), `${theirs.id}0`, `${theirs.id}%20`, `${theirs.id}%00`),
    )
    const property = fc.asyncProperty(segment, async id => {
      const request = { method: 'PUT', url: `/admin/users/${id}`, headers: asAdmin } as const
      check(await app.inject({ ...request, payload: { firstName: 'Found' } }), [400, 404, 405, 414])
    })
    await fc.assert(property, RUNS)
  })

  const names = fc
    .string({ unit: codePoint, minLength: 1, maxLength: 128 })
    .filter(name => !name.includes('\u0000') && name.trim() === name && nameViolations(name).length === 0)

  t.test('any name is returned byte for byte', async t => {
    const user = await signUp(app)
    const headers = bearer(user.token)
    const put = (payload: object) => app.inject({ method: 'PUT', url: '/account', headers, payload })
    const property = fc.asyncProperty(names, names, async (firstName, lastName) => {
      for (const response of [
        await put({ firstName, lastName }),
        await app.inject({ url: '/account', headers }),
        await app.inject({ url: `/admin/users?email=${user.email}`, headers: asAdmin }),
      ]) {
        check(response, [200])
        const account = response.json().results?.[0] ?? response.json()
        if (account.firstName !== firstName || account.lastName !== lastName) throw new Error(response.body)
      }
    })
    await fc.assert(property, RUNS)
    t.equal((await put({ firstName: '😀'.repeat(128) })).statusCode, 200, '128 code points')
    t.equal((await put({ firstName: '😀'.repeat(129) })).statusCode, 400, '129 code points')
    t.equal((await put({ firstName: '  Ada\t' })).json().firstName, 'Ada', 'trimmed')
    for (const bad of ['a\u0000', '\ud800', 'x\udc00y', '   ', '']) {
      t.equal((await put({ firstName: bad })).statusCode, 400, JSON.stringify(bad))
    }
    const given = { email: freshEmail(), password: PASSWORD, firstName: '\u{1f469}\u200d\u{1f680}e\u0301' }
    const signedUp = await app.inject({ method: 'POST', url: '/account/sign-up', payload: given })
    t.equal(signedUp.json().user.firstName, given.firstName, 'not normalised')
  })

  t.test('afterwards all other users are unchanged byte for byte', async t => {
    t.strictSame(await everyUser(), before)
    for (const { email } of bystanders) {
      const payload = { email, password: PASSWORD }
      const signedIn = await app.inject({ method: 'POST', url: '/account/sign-in', payload })
      t.equal(signedIn.statusCode, 200, 'and can sign in')
    }
    t.equal(Object.keys(Object.prototype).length, 0, 'the prototype of objects is clean')
  })
})
