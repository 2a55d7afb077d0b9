/** PUT /admin/users/:id: validation, changes, and disabling (docs/design.md, "Contract"). */
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { UNKNOWN_ID } from '../support/admin-routes.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  cookie,
  freshEmail,
  manualClock,
  PASSWORD,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { mailbox, SUBJECT } from '../support/mailbox.ts'
import { ADMIN_USER, hasShape, isPrivateJson } from '../support/response-shapes.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const clock = manualClock()
  const iso = () => new Date(clock.now()).toISOString()
  const app = await build(t, { clock: clock.now, env: { RATE_LIMIT: 'off' } })

  const update = (id: string, payload: Record<string, unknown>) => updateUser(app, id, payload)
  const stored = async (email: string) =>
    (await app.inject({ url: `/admin/users?email=${encodeURIComponent(email)}`, headers: asAdmin })).json()
      .results[0]
  const account = async (token: string) =>
    (await app.inject({ url: '/account', headers: bearer(token) })).json()
  const register = (email: string) =>
    app.inject({ method: 'POST', url: '/account/sign-up', payload: { email, password: PASSWORD } })
  const statuses = (responses: { statusCode: number }[]) =>
    responses.map(({ statusCode }) => statusCode).sort()

  t.test('every property can be changed alone, and the response is the AdminUser', async t => {
    const { id, email } = await signUp(app, { firstName: 'Before', lastName: 'Before' })
    for (const change of [
      { firstName: 'After' },
      { lastName: 'e\u0301 😀 שלום' },
      { emailVerified: true },
      { disabled: true },
      { disabled: false },
      { emailVerified: false },
      { firstName: null },
      { lastName: null, firstName: 'Again', emailVerified: true },
    ]) {
      const before = await stored(email)
      clock.advance(1_000)
      const response = await update(id, change)
      isPrivateJson(t, response, 200)
      hasShape(t, response.json(), ADMIN_USER)
      t.strictSame(response.json(), { ...before, ...change, updatedAt: iso() }, JSON.stringify(change))
      t.strictSame(await stored(email), response.json(), 'and it is kept')
    }
  })

  t.test('names are trimmed, and the e-mail is canonicalised', async t => {
    const { id } = await signUp(app)
    const email = freshEmail('changed')
    const change = { firstName: ' \tA b ', email: ` ${email.toUpperCase()} `, lastName: '😀'.repeat(128) }
    const response = await update(id, change)
    t.match(response.json(), { firstName: 'A b', email, lastName: '😀'.repeat(128) })
  })

  t.test('the user sees a change at once, and no session ends', async t => {
    const { id, token } = await signUp(app)
    await account(token)
    const email = freshEmail()
    const change = { firstName: 'New', lastName: 'Name', email, emailVerified: true, disabled: false }
    t.equal((await update(id, change)).statusCode, 200)
    const { disabled, ...seen } = { ...change }
    t.match(await account(token), seen)
    t.equal(disabled, false)
  })

  t.test('another e-mail is mailed to both addresses, once it is stored', async t => {
    const app = await build(t)
    const mails = mailbox(app)
    const taken = await signUp(app)
    const { id, email } = await signUp(app)
    const next = freshEmail('next')
    const refused = freshEmail('refused')
    const change = (payload: object, headers = {}) =>
      call(app, 'PUT', `/admin/users/${id}`, payload, { ...asAdmin, ...headers })
    t.equal((await change({ email: taken.email })).statusCode, 409)
    t.equal((await change({ email: refused }, { 'if-match': '"7"' })).statusCode, 412)
    t.equal((await change({ email: refused, roles: 'x' })).statusCode, 400)
    t.equal((await change({ email })).statusCode, 200, 'the same')
    t.equal((await change({ emailVerified: true, firstName: 'Ann' })).statusCode, 200, 'confirmed')
    t.equal((await change({ email: next, emailVerified: true })).statusCode, 200)
    t.equal((await change({ email: ` ${next.toUpperCase()}` })).statusCode, 200, 'again')
    const [left] = await mails.to(email, 'emailChanged')
    t.match(left?.text, next)
    const [set] = await mails.to(next, 'emailAssigned')
    t.notMatch(`${set?.text} ${set?.html}`, email, 'a stranger learns no other address')
    t.same(await mails.final(email), [SUBJECT.verification, SUBJECT.emailChanged])
    t.same(await mails.final(next), [SUBJECT.emailAssigned])
    t.same(await mails.final(refused), [])
    t.same(await mails.final(taken.email), [SUBJECT.verification])
  })

  t.test('simultaneous changes of an e-mail each tell the address that they replace', async t => {
    const app = await build(t)
    const mails = mailbox(app)
    const { id, email } = await signUp(app)
    const addresses = Array.from({ length: 8 }, () => freshEmail('race'))
    const responses = await Promise.all(
      addresses.map(each => updateUser(app, id, { email: each, emailVerified: true })),
    )
    t.same(
      statuses(responses),
      addresses.map(() => 200),
    )
    const last = await app.services.users.get(id)
    t.equal(last.emailVerified, true)
    t.same(await mails.final(email), [SUBJECT.verification, SUBJECT.emailChanged])
    for (const address of addresses) {
      const replaced = address === last.email ? [] : [SUBJECT.emailChanged]
      t.same(await mails.final(address), [SUBJECT.emailAssigned, ...replaced], address)
    }
  })

  t.test('an unknown user is a 404, an invalid id a 400 (§7.2)', async t => {
    globalErrorOf(t, await update(UNKNOWN_ID, { firstName: 'x' }), 404, 'unknown')
    for (const id of ['01890000-0000-7000-8000', 'x', 'a%00b', '%F0%9F%98%80'])
      errorsAt(t, await update(id, { firstName: 'x' }), 400, ['id'], `no id at all: ${id}`)
  })

  t.test('at least one property is required', async t => {
    const { id } = await signUp(app)
    globalErrorOf(t, await update(id, {}), 400)
  })

  t.test('invalid and unknown properties are rejected by name, and nothing changes', async t => {
    const { id, email, token } = await signUp(app, { firstName: 'Kept' })
    const before = await stored(email)
    for (const [property, ...values] of [
      ['firstName', 5, '', ' ', 'x'.repeat(129), 'a\0', '\ud800', [], {}, true],
      ['lastName', 5, '', ' ', '😀'.repeat(129), 'a\0', '\udc00', [], {}, false],
      [
        'email',
        5,
        '',
        'x',
        null,
        `a\0@example.com`,
        `\ud800${freshEmail()}`,
        `${'x'.repeat(250)}@example.com`,
        [],
      ],
      ['disabled', 1, 0, 'true', 'false', '', null, []],
      ['emailVerified', 1, 0, 'true', '', null, {}],
      ['password', PASSWORD],
      ['id', UNKNOWN_ID],
      ['createdAt', '2020-01-01T00:00:00.000Z'],
      ['lastRequestAt', null],
    ] as [string, ...unknown[]][])
      for (const value of values) {
        const title = `${property}: ${JSON.stringify(value).slice(0, 30)}`
        errorsAt(t, await update(id, { lastName: 'Lost', [property]: value }), 400, [property], title)
      }
    const all = { firstName: 1, lastName: '', email: 'x', disabled: 'x', emailVerified: 0, role: 1, '': 1 }
    const response = await update(id, all)
    errorsAt(t, response, 400, Object.keys(all), 'all at once')
    t.strictSame(response.json().errors.role, ['is not allowed'])
    t.strictSame(await stored(email), before)
    t.equal(await accountStatus(app, token), 200)
  })

  t.test('after a change of the e-mail the old one is free and the new one signs in', async t => {
    const { id, email } = await signUp(app)
    const moved = freshEmail('moved')
    t.equal((await update(id, { email: moved })).statusCode, 200)
    t.equal((await signIn(app, email)).statusCode, 401, 'the old one')
    t.equal((await signIn(app, moved)).json().user?.id, id, 'the new one')
    t.equal((await register(moved)).statusCode, 409)
    const other = await register(email)
    t.equal(other.statusCode, 201, 'the old one can be taken')
    t.not(other.json().user.id, id)
  })

  t.test('a taken e-mail is a 409 under `email`, in any letter case, and changes nothing', async t => {
    const [one, other] = [await signUp(app, { firstName: 'Kept' }), await signUp(app)]
    const before = await stored(one.email)
    for (const email of [other.email, other.email.toUpperCase(), ` ${other.email} `]) {
      const change = { firstName: 'Lost', email, disabled: true, emailVerified: true }
      errorsAt(t, await update(one.id, change), 409, ['email'], email)
    }
    t.strictSame(await stored(one.email), before)
    t.equal(await accountStatus(app, one.token), 200, 'not even disabled')
    for (const email of [one.email, one.email.toUpperCase()])
      t.equal((await update(one.id, { email })).json().email, one.email, 'the own one is not taken')
  })

  t.test('disabling ends every session at once; enabling restores none', async t => {
    const { id, email, token } = await signUp(app)
    const second: string = (await signIn(app, email)).json().accessToken
    for (const one of [token, second]) t.equal(await accountStatus(app, one), 200)
    t.equal((await update(id, { disabled: true })).json().disabled, true)
    for (const one of [token, second]) {
      t.equal(await accountStatus(app, one), 401, 'at once')
      t.equal((await app.inject({ url: '/account', headers: cookie(one) })).statusCode, 401, 'as a cookie')
      const health = await app.inject({ url: '/health', headers: bearer(one) })
      t.equal(health.statusCode, 200, 'a public route is still served (§5.1.3)')
    }
    globalErrorOf(t, await signIn(app, email), 403)
    t.equal((await update(id, { disabled: true })).statusCode, 200, 'twice is as once')
    t.equal((await update(id, { disabled: false })).json().disabled, false)
    for (const one of [token, second]) t.equal(await accountStatus(app, one), 401, 'not back')
    const third: string = (await signIn(app, email)).json().accessToken
    t.equal(await accountStatus(app, third), 200, 'a new session')
    for (const one of [token, second]) t.equal(await accountStatus(app, one), 401, 'still not back')
  })

  t.test('disabling affects only that user', async t => {
    const [one, other] = [await signUp(app), await signUp(app)]
    await update(one.id, { disabled: true, firstName: 'Gone' })
    t.equal(await accountStatus(app, other.token), 200)
    t.match(await stored(one.email), { disabled: true, firstName: 'Gone' }, 'together with another property')
  })

  t.test('a sign-in concurrent with disabling leaves no valid token', async t => {
    for (let round = 0; round < 5; round += 1) {
      const { id, email } = await signUp(app)
      const before = Array.from({ length: 6 }, () => signIn(app, email))
      for (let turn = 0; turn < round * 4; turn += 1) await new Promise(setImmediate)
      const disabling = update(id, { disabled: true })
      const responses = await Promise.all([...before, ...Array.from({ length: 6 }, () => signIn(app, email))])
      t.equal((await disabling).statusCode, 200)
      const tokens: string[] = responses.flatMap(response => response.json().accessToken ?? [])
      for (const response of responses) t.match(String(response.statusCode), /^(200|403)$/, response.body)
      for (const token of tokens) t.equal(await accountStatus(app, token), 401, `round ${round}: disabled`)
      await update(id, { disabled: false })
      for (const token of tokens) t.equal(await accountStatus(app, token), 401, `round ${round}: enabled`)
    }
  })

  t.test('a request concurrent with disabling does not revive the token', async t => {
    const { id, token } = await signUp(app)
    const races = Array.from({ length: 40 }, (_, number) =>
      number === 20
        ? update(id, { disabled: true })
        : app.inject({ url: '/account', headers: bearer(token) }),
    )
    for (const { statusCode } of await Promise.all(races)) t.match(String(statusCode), /^(200|401)$/)
    t.equal(await accountStatus(app, token), 401)
  })

  t.test('of many users who change to one e-mail concurrently one succeeds', async t => {
    const users = await Promise.all(Array.from({ length: 10 }, () => signUp(app)))
    const email = freshEmail('wanted')
    const responses = await Promise.all(
      users.map(({ id }, number) => update(id, { email: number % 2 ? email : email.toUpperCase() })),
    )
    t.strictSame(statuses(responses), [200, ...Array<number>(9).fill(409)])
    for (const response of responses) if (response.statusCode === 409) errorsAt(t, response, 409, ['email'])
    const winner = responses.findIndex(({ statusCode }) => statusCode === 200)
    t.equal((await stored(email)).id, users[winner]?.id)
  })

  t.test('of a concurrent sign-up and change to one e-mail one succeeds', async t => {
    for (let round = 0; round < 5; round += 1) {
      const { id } = await signUp(app)
      const email = freshEmail('raced')
      const signUps = Array.from({ length: 3 }, () => register(email))
      for (let turn = 0; turn < round * 5; turn += 1) await new Promise(setImmediate)
      const responses = await Promise.all([...signUps, update(id, { email })])
      const [winner, ...losers] = statuses(responses)
      t.ok(winner === 200 || winner === 201, `round ${round}: ${winner}`)
      t.strictSame(losers, [409, 409, 409])
    }
  })

  t.test('concurrent changes of one user lose none', async t => {
    const { id, token } = await signUp(app)
    const email = freshEmail('merged')
    const put = (payload: Record<string, unknown>) =>
      app.inject({ method: 'PUT', url: '/account', headers: bearer(token), payload })
    const responses = await Promise.all([
      update(id, { firstName: 'One' }),
      put({ lastName: 'Two' }),
      // In one request: a new e-mail alone is unverified, and the order of two concurrent changes is undefined.
      update(id, { email, emailVerified: true }),
      update(id, { disabled: false }),
      ...Array.from({ length: 10 }, () => account(token)),
    ])
    for (const { statusCode } of responses.slice(0, 4)) t.equal(statusCode, 200)
    t.match(await account(token), { firstName: 'One', lastName: 'Two', email, emailVerified: true })
  })
})
