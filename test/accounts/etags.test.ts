/** ETag and If-Match on both routes that change a user (RFC 9110 §8.8.3; §13.1.1; docs/design.md, "Account life cycle"). */
import t from 'tap'
import { allEvents, createUser, impersonate, postUser, UNKNOWN_ID } from '../support/admin-routes.ts'
import { asAdmin, bearer, freshEmail, manualClock, PASSWORD, signIn, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox } from '../support/mailbox.ts'
import { inShortRun } from '../support/run.ts'

/** Strong: no `W/` (RFC 9110 §8.8.1). */
const STRONG = /^"[\x21\x23-\x7e]+"$/

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const app = await build(t, { clock: clock.now })
  const mails = mailbox(app)

  const get = (id: string) => app.inject({ url: `/admin/users/${id}`, headers: asAdmin })
  const tagOf = async (id: string) => String((await get(id)).headers.etag)
  const put = (
    url: string,
    headers: Record<string, string>,
    ifMatch: string | undefined,
    payload: Record<string, unknown>,
  ) =>
    app.inject({
      method: 'PUT',
      url,
      headers: { ...headers, ...(ifMatch !== undefined && { 'if-match': ifMatch }) },
      payload,
    })
  /** Both routes that change one user, for the same user. */
  const doorsOf = ({ id, token }: { id: string; token: string }) => [
    (ifMatch: string | undefined, payload: Record<string, unknown>) =>
      put('/account', bearer(token), ifMatch, payload),
    (ifMatch: string | undefined, payload: Record<string, unknown>) =>
      put(`/admin/users/${id}`, asAdmin, ifMatch, payload),
  ]

  t.test('every response with the user has the same strong ETag, HEAD too', async t => {
    const { id, token } = await signUp(app)
    const headers = bearer(token)
    const tag = await tagOf(id)
    t.match(tag, STRONG)
    for (const response of [
      await app.inject({ url: '/account', headers }),
      await app.inject({ method: 'HEAD', url: '/account', headers }),
      await app.inject({ method: 'HEAD', url: `/admin/users/${id}`, headers: asAdmin }),
    ])
      t.equal(response.headers.etag, tag)
    for (const change of doorsOf({ id, token })) {
      const changed = await change(undefined, { firstName: 'Changed' })
      t.match(changed.headers.etag, STRONG)
      t.equal(changed.headers.etag, await tagOf(id))
      t.equal(changed.headers.etag, (await app.inject({ url: '/account', headers })).headers.etag)
    }
    t.match((await postUser(app, { email: freshEmail() })).headers.etag, STRONG)
  })

  t.test('the ETag changes with every visible field except the last request', async t => {
    const moved = freshEmail('moved')
    const user = await signUp(app)
    const { id } = user
    let { email, token } = user
    const send = (method: 'POST' | 'PUT' | 'DELETE', url: string, payload?: object) =>
      app.inject({ method, url, headers: bearer(token), ...(payload && { payload }) })
    const admin = (payload: Record<string, unknown>) => put(`/admin/users/${id}`, asAdmin, undefined, payload)
    const signedIn = async (password?: string) => {
      const response = await signIn(app, email, password)
      token = response.json().accessToken
      return response
    }
    const steps: Record<string, () => Promise<{ statusCode: number; json(): Record<string, unknown> }>> = {
      'a request': () => app.inject({ url: '/account', headers: bearer(token) }),
      'a sign-in': () => signedIn(),
      'the end of other sessions': () => send('DELETE', '/account/sessions'),
      'an impersonation': () => impersonate(app, id),
      'another name': () => send('PUT', '/account', { firstName: 'One' }),
      'another name, by an administrator': () => admin({ lastName: 'Two' }),
      'no name': () => send('PUT', '/account', { firstName: null }),
      verified: () => admin({ emailVerified: true }),
      'not verified': () => admin({ emailVerified: false }),
      disabled: () => admin({ disabled: true }),
      enabled: () => admin({ disabled: false }),
      'a sign-in again': () => signedIn(),
      'a wish for another e-mail': () => send('PUT', '/account/email', { password: PASSWORD, email: moved }),
      'another e-mail': async () => {
        const wanted = await mails.token(moved, 'emailChange')
        email = moved
        return send('POST', '/account/verify-email', { token: wanted })
      },
      'a wish for a reset': async () => {
        const response = await send('POST', '/account/forgot-password', { email })
        t.context.reset = await mails.token(email, 'passwordReset')
        return response
      },
      'a reset': async () => {
        const payload = { token: t.context.reset, password: `${PASSWORD} 2` }
        const response = await send('POST', '/account/reset-password', payload)
        token = response.json().accessToken
        return response
      },
      'another password': async () => {
        const payload = { currentPassword: `${PASSWORD} 2`, newPassword: `${PASSWORD} 3` }
        const response = await send('PUT', '/account/password', payload)
        token = response.json().accessToken
        return response
      },
      'a sign-out': () => send('POST', '/account/sign-out'),
    }
    const tags = new Map<string, string>()
    const seen = async () => {
      const response = await get(id)
      return {
        tag: String(response.headers.etag),
        view: JSON.stringify({ ...response.json(), lastRequestAt: null }),
      }
    }
    let before = await seen()
    tags.set(before.tag, before.view)
    for (const [title, step] of Object.entries(steps)) {
      clock.advance(1_000)
      const { statusCode } = await step()
      t.ok(statusCode >= 200 && statusCode < 300, `${title}: ${statusCode}`)
      const after = await seen()
      t.equal(after.tag === before.tag, after.view === before.view, `${title}: ${before.tag} ${after.tag}`)
      t.equal(tags.get(after.tag) ?? after.view, after.view, `${title}: never the tag of another state`)
      tags.set(after.tag, after.view)
      before = after
    }
  })

  t.test('a change with the current ETag succeeds; with a stale one it is a 412', async t => {
    const user = await signUp(app)
    for (const [index, change] of doorsOf(user).entries()) {
      const old = await tagOf(user.id)
      const changed = await change(old, { firstName: `First ${index}` })
      t.equal(changed.statusCode, 200)
      const before = await get(user.id)
      globalErrorOf(t, await change(old, { firstName: 'Lost' }), 412)
      t.equal((await get(user.id)).headers.etag, before.headers.etag)
      t.match((await get(user.id)).json(), {
        firstName: `First ${index}`,
        updatedAt: before.json().updatedAt,
      })
      t.equal((await change(String(changed.headers.etag), { lastName: `Last ${index}` })).statusCode, 200)
    }
  })

  t.test(
    'D11: If-Match accepts lists, `*` and tags that a proxy has marked; foreign and malformed ones do not match',
    async t => {
      const user = await signUp(app)
      const other = await createUser(app)
      for (const change of doorsOf(user)) {
        const of = async (make: (tag: string) => string) =>
          change(make(await tagOf(user.id)), { firstName: 'Changed' })
        for (const make of [
          (tag: string) => tag,
          () => '*',
          () => ' * ',
          (tag: string) => ` ${tag} `,
          (tag: string) => `"foreign", ${tag}`,
          (tag: string) => `${tag},"foreign"`,
          (tag: string) => `W/${tag}, "a, b" ,, ${tag}`,
          (tag: string) => `W/${tag}`,
          (tag: string) => `"foreign", W/${tag}`,
          ...['-gzip', '--gzip', '-br', '-zstd', '-gunzip', '-gzip-gunzip-gzip', '--br--gzip'].flatMap(
            coding => [
              (tag: string) => `${tag.slice(0, -1)}${coding}"`,
              (tag: string) => `W/${tag.slice(0, -1)}${coding}"`,
            ],
          ),
          (tag: string) => `${Array.from({ length: 200 }, (_, index) => `"x${index}"`).join(', ')}, ${tag}`,
        ])
          t.equal((await of(make)).statusCode, 200, make('"tag"').slice(0, 40))
        for (const make of [
          () => 'W/"999"',
          () => '"999-gzip"',
          () => '"-gzip"',
          (tag: string) => `${tag.slice(0, -1)}-other"`,
          (tag: string) => `"gzip-${tag.slice(1)}`,
          () => '"foreign"',
          () => '"foreign", W/"foreign"',
          () => '""',
          () => '"*"',
          (tag: string) => tag.slice(1, -1),
          (tag: string) => tag.slice(0, -1),
          (tag: string) => `"${tag.slice(1, -1)} "`,
          (tag: string) => `"0${tag.slice(1)}`,
          (tag: string) => `"x, ${tag.slice(1, -1)}, y"`,
          () => '"999999999999999"',
          () => '"99999999999999999999999999"',
          () => '"-1"',
          () => '"1e0"',
          () => 'x'.repeat(2_000),
        ])
          globalErrorOf(t, await of(make), 412, make('"tag"').slice(0, 40))
      }
      t.equal((await put(`/admin/users/${other.id}`, asAdmin, '*', { firstName: 'x' })).statusCode, 200)
    },
  )

  t.test('an unknown user is a 404 and invalid input a 400, before the 412', async t => {
    const { id } = await createUser(app)
    for (const ifMatch of ['*', '"1"', 'W/"1"', '"foreign"'])
      globalErrorOf(t, await put(`/admin/users/${UNKNOWN_ID}`, asAdmin, ifMatch, { lastName: 'x' }), 404)
    errorsAt(t, await put(`/admin/users/${id}`, asAdmin, '"foreign"', { lastName: 5 }), 400, ['lastName'])
    const headers = { 'if-match': '"1"' }
    const url = `/admin/users/${id}`
    const rejection = await app.inject({ method: 'PUT', url, headers, payload: { lastName: 'x' } })
    globalErrorOf(t, rejection, 401, 'the gate first')
  })

  t.test('a stale ETag is reported before a taken e-mail, and ends no session', async t => {
    const [{ id, token }, other] = [await signUp(app), await createUser(app)]
    const stale = await put(`/admin/users/${id}`, asAdmin, '"foreign"', { email: other.email })
    globalErrorOf(t, stale, 412)
    globalErrorOf(t, await put(`/admin/users/${id}`, asAdmin, '"foreign"', { disabled: true }), 412)
    t.equal((await app.inject({ url: '/account', headers: bearer(token) })).statusCode, 200)
  })

  t.test('a change that changes nothing keeps the ETag, and records no event', async t => {
    const user = await signUp(app)
    const own = { firstName: 'Ada', lastName: null, userMetadata: { b: 1, a: [2] } }
    const record = { ...own, roles: ['x', 'a'], appMetadata: { plan: 'free' }, emailVerified: true }
    const [account, admin] = doorsOf(user)
    if (account === undefined || admin === undefined) throw new Error('no routes')
    await admin(undefined, record)
    const eventsOf = () => allEvents(app, { userId: user.id })
    const [before, tag, events] = [(await get(user.id)).json(), await tagOf(user.id), await eventsOf()]
    clock.advance(1_000)
    for (const [put, changes] of [
      [account, { firstName: 'Ada' }],
      [account, own],
      [admin, { ...record, roles: ['a', 'x'], email: user.email.toUpperCase(), disabled: false }],
    ] as const)
      for (const ifMatch of [undefined, tag, '*']) {
        const { statusCode, headers, body } = await put(ifMatch, changes)
        t.strictSame([statusCode, headers.etag], [200, tag], `${JSON.stringify(changes)} ${ifMatch}: ${body}`)
      }
    globalErrorOf(t, await account('"foreign"', { firstName: 'Ada' }), 412)
    const { lastRequestAt: _before, ...unchanged } = before
    const { lastRequestAt: _after, ...after } = (await get(user.id)).json()
    t.strictSame(after, unchanged)
    t.strictSame(await eventsOf(), events)
    t.not(
      (await account(tag, { userMetadata: { a: [2], b: 1 } })).headers.etag,
      tag,
      'another order is a change',
    )
    t.equal((await account(undefined, { firstName: 'Grace' })).statusCode, 200)
    await admin(undefined, { disabled: true })
    const disabled = await eventsOf()
    t.equal((await admin(undefined, { disabled: true })).statusCode, 200)
    t.strictSame(await eventsOf(), disabled, 'a disabled user is not disabled again')
    const other = await signUp(app)
    const sessions = { method: 'DELETE', url: '/account/sessions', headers: bearer(other.token) } as const
    t.equal((await app.inject(sessions)).statusCode, 204)
    t.match(
      await allEvents(app, { userId: other.id }),
      [{ type: 'user.signed-up' }],
      'no other session ended',
    )
  })

  t.test('of two changes with one ETag one succeeds and the other is a 412', async t => {
    const user = await signUp(app)
    const [account, admin] = doorsOf(user)
    if (account === undefined || admin === undefined) throw new Error('no routes')
    for (let round = 0; round < inShortRun(30, 100); round += 1) {
      const tag = await tagOf(user.id)
      const doors = [round % 2 ? account : admin, round % 3 ? admin : account]
      const responses = await Promise.all(
        doors.map((put, index) => put(tag, { lastName: `${round}.${index}` })),
      )
      t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 412], `round ${round}`)
      const winner = responses.findIndex(({ statusCode }) => statusCode === 200)
      t.equal((await get(user.id)).json().lastName, `${round}.${winner}`, `round ${round}: the winner's`)
    }
  })
})
