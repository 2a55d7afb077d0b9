/** Linking and unlinking identities, and accounts that somebody else opened before (CASES L and O). */
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { createKey as createAdminKey } from '../support/admin-keys.ts'
import { allEvents, impersonate, UNKNOWN_ID } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { addTotp } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  confirmedUser,
  freshEmail,
  manualClock,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { runCommand } from '../support/cli.ts'
import { signedInTo } from '../support/console.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import {
  type Account,
  freshAccount,
  programOf,
  providersEnv,
  startProvider,
} from '../support/identity-provider.ts'
import { mailbox } from '../support/mailbox.ts'
import { register } from '../support/passkeys.ts'
import { select } from '../support/stored-rows.ts'
import { until } from '../support/until.ts'

const MINUTE = 60_000

/** The origin for which passkeys are made. */
const PUBLIC_URL = 'http://localhost:3000'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const provider = await startProvider(t, {
    ids: ['test', 'trusted', 'timid'],
    publicUrl: PUBLIC_URL,
  })
  const second = await startProvider(t, { ids: ['second', 'test'], publicUrl: PUBLIC_URL })
  const trusting = { link: 'verified-email' }
  const entries = [
    provider.entry(),
    provider.entry({ id: 'trusted', ...trusting }),
    provider.entry({ id: 'timid', ...trusting, authoritativeFor: ['elsewhere.example'] }),
    second.entry({ id: 'second', ...trusting }),
  ]
  const issuers = [provider.issuer, second.issuer]
  const DATABASE_URL = await newDatabase(t)
  const env: Record<string, string> = {
    ...providersEnv(entries, issuers),
    PUBLIC_URL,
    DATABASE_URL,
    CONSOLE: 'on',
  }
  const clock = manualClock(Date.now())
  const app = await build(t, { env, clock: clock.now })
  const instance = await build(t, { env, clock: clock.now })
  t.afterEach(() => {
    provider.changeToken = null
  })
  const program = programOf(app, provider)
  const trusted = programOf(app, provider, 'trusted')
  const mails = mailbox(app)

  const identitiesOf = async (token: string) =>
    (await call(app, 'GET', '/account/identities', undefined, bearer(token))).json().results
  const unlink = (token: string, id: string, on = app) =>
    call(on, 'DELETE', `/account/identities/${id}`, undefined, bearer(token))
  const typesOf = async (userId: string) =>
    (await allEvents(app, { userId })).map(({ type }) => type).toReversed()
  /** The `methods` of a user by every route and filter. */
  const shownMethods = async ({ id, email }: { id: string; email: string }, on = app) => {
    const url = `/admin/users/${id}`
    const ofEmail = encodeURIComponent(email)
    const lists = [
      'limit=100',
      `ids=${id}&sort=firstName`,
      `email=${ofEmail}`,
      `search=${ofEmail}`,
      `search=${ofEmail}&role=linked&sort=-lastName`,
      'role=linked&limit=100',
    ].map(query => call(on, 'GET', `/admin/users?${query}`, undefined, asAdmin))
    const changed = await call(on, 'PUT', url, { roles: ['linked'] }, asAdmin)
    const users = [
      [changed.json()],
      [(await call(on, 'GET', url, undefined, asAdmin)).json()],
      ...(await Promise.all(lists)).map(response => response.json().results),
      await exportAll(on),
      await exportAll(on, '?passwordHashes=true'),
    ]
    return users.map(found => found.find((user: { id: string }) => user.id === id)?.methods)
  }
  /** A user whom the provider has signed up: without a password. */
  const openedByProvider = async () => {
    provider.account = freshAccount()
    const { user, accessToken } = (await program.signIn()).json()
    return { id: user.id, email: user.email, token: accessToken, account: provider.account }
  }

  t.test('a user links an identity, signs in with it, and unlinks it, with events and mails', async t => {
    const user = await confirmedUser(app)
    provider.account = freshAccount()
    const linked = await program.link(user.token)
    t.equal(linked.statusCode, 201, linked.body)
    const { id, ...identity } = linked.json()
    t.match(identity, {
      provider: 'test',
      issuer: provider.issuer,
      subject: provider.account.sub,
      email: provider.account.email,
      lastUsedAt: null,
    })
    t.strictSame(await identitiesOf(user.token), [linked.json()])
    clock.advance(MINUTE)
    t.equal((await program.signIn()).json().user.id, user.id)
    t.type((await identitiesOf(user.token))[0].lastUsedAt, 'string')
    const methods = await call(app, 'GET', '/account/methods', undefined, bearer(user.token))
    t.match(methods.json().results, [{ method: 'password' }, { method: 'identity', id }])
    t.equal((await unlink(user.token, id)).statusCode, 204)
    globalErrorOf(t, await unlink(user.token, id), 404)
    t.strictSame(await identitiesOf(user.token), [])
    const events = await typesOf(user.id)
    t.strictSame(events.slice(-3), ['identity.linked', 'user.signed-in', 'identity.removed'])
    const [mail] = await mails.to(user.email, 'identityLinked')
    t.match(mail?.text, /Test Provider/)
    t.match((await mails.to(user.email, 'identityRemoved'))[0]?.text, /Test Provider/)
  })

  t.test('administrators see an identity among the methods of its user while it signs in', async t => {
    const shows = async (user: { id: string; email: string }, methods: readonly string[], on = app) => {
      await updateUser(app, user.id, { roles: ['linked'] })
      for (const shown of await shownMethods(user, on)) t.strictSame(shown, methods, user.email)
    }
    const opened = await openedByProvider()
    await shows(opened, ['identity'])
    const user = await confirmedUser(app)
    await shows(user, ['password'])
    provider.account = freshAccount()
    const first = (await program.link(user.token)).json().id
    second.account = freshAccount()
    const other = (await programOf(instance, second, 'second').link(user.token)).json().id
    await addTotp(app, user.token)
    await register(app, user.token)
    const all = ['password', 'passkey', 'totp', 'identity']
    for (const on of [app, instance]) await shows(user, all, on)

    const quoted = "https://elsewhere.example/it's"
    const entriesHere = [second.entry({ id: 'second' }), second.entry({ id: 'quoted', issuer: quoted })]
    const here = { ...env, ...providersEnv(entriesHere, issuers), PUBLIC_URL }
    const reduced = await build(t, { env: here, clock: clock.now })
    const identity = { issuer: quoted, subject: 'imported', provider: 'quoted' }
    const line = { email: freshEmail(), credentials: { identities: [identity] } }
    const imported = { email: line.email, id: (await importAll(reduced, [line]))[0]?.id ?? '' }
    await shows(imported, ['identity'], reduced)
    await shows(imported, [])
    await shows(opened, [], reduced)
    await shows(user, all, reduced)
    const { OIDC_PROVIDERS: _, ...without } = env
    await shows(opened, [], await build(t, { env: without, clock: clock.now }))

    const read = async (...args: string[]) => (await runCommand(['users', ...args], env)).stdout
    for (const [command = '', ...args] of [
      ['get', opened.id],
      ['get', opened.email],
      ['enable', opened.email],
    ])
      t.strictSame(JSON.parse(await read(command, ...args, '--json')).methods, ['identity'], command)
    t.match(JSON.parse(await read('list', '--json', '--email', opened.email)).results, [
      { methods: ['identity'] },
    ])
    t.match(await read('export'), /"methods":\["identity"\]/)
    const client = await signedInTo(app)
    await client.open(`/console/users/${opened.id}`)
    t.match(client.page, /<dt>Signs in with<\/dt>\s*<dd>.*Provider/)

    t.equal((await unlink(user.token, first)).statusCode, 204)
    await shows(user, all, instance)
    t.equal((await unlink(user.token, other, instance)).statusCode, 204)
    for (const on of [app, instance]) await shows(user, ['password', 'passkey', 'totp'], on)
  })

  t.test('linking and unlinking need a recent proof of identity', async t => {
    const user = await openedByProvider()
    const withPassword = await confirmedUser(app)
    provider.account = freshAccount()
    const { id } = (await program.link(withPassword.token)).json()
    clock.advance(11 * MINUTE)
    for (const token of [user.token, withPassword.token])
      globalErrorOf(
        t,
        await call(app, 'POST', '/account/identities', { provider: 'test' }, bearer(token)),
        403,
      )
    globalErrorOf(t, await unlink(withPassword.token, id), 403)
    const key = await createKey(app, (await signUp(app)).token)
    globalErrorOf(t, await call(app, 'GET', '/account/identities', undefined, bearer(key.token)), 403)
    const proved = await call(
      app,
      'DELETE',
      `/account/identities/${id}`,
      { password: PASSWORD },
      bearer(withPassword.token),
    )
    t.equal(proved.statusCode, 204)
  })

  t.test('a user has at most 20 identities', async t => {
    const accounts = Array.from({ length: 19 }, () => freshAccount())
    const identities = accounts.map(({ sub: subject }) => ({
      issuer: provider.issuer,
      subject,
      provider: 'test',
    }))
    const email = freshEmail()
    await importAll(app, [{ email, emailVerified: true, credentials: { identities } }])
    provider.account = accounts[0] as Account
    const { user, accessToken } = (await program.signIn()).json()
    for (const status of [201, 409]) {
      provider.account = freshAccount()
      t.equal((await program.link(accessToken)).statusCode, status)
    }
    provider.account = freshAccount({ email })
    const byEmail = await trusted.signIn()
    t.match(globalErrorOf(t, byEmail, 409), /20 identities/)
    t.equal((await identitiesOf(accessToken)).length, 20)
    await updateUser(app, user.id, { emailVerified: false })
    t.equal((await trusted.signIn()).statusCode, 200, 'those of an account that was never confirmed go')
  })

  t.test('L1 the account of a stranger with the address is never linked silently', async t => {
    const stranger = await signUp(app)
    provider.account = freshAccount({ email: stranger.email })
    globalErrorOf(t, await program.signIn(), 409)
    t.strictSame(await identitiesOf(stranger.token), [])
    t.equal(await accountStatus(app, stranger.token), 200)
  })

  t.test('L1 with link: verified-email everything of the stranger is removed first', async t => {
    const stranger = await signUp(app)
    const { token: apiKey } = await createKey(app, stranger.token)
    await register(app, stranger.token)
    provider.account = freshAccount()
    await program.link(stranger.token)
    const ofStranger = provider.account
    const totp = await addTotp(app, stranger.token)
    provider.account = freshAccount({ email: stranger.email })
    const owner = await trusted.signIn()
    t.equal(owner.statusCode, 200, owner.body)
    t.match(owner.json().user, { id: stranger.id, emailVerified: true })
    const { accessToken } = owner.json()
    t.equal(await accountStatus(app, stranger.token), 401)
    t.equal(await accountStatus(instance, stranger.token), 401)
    t.equal(await accountStatus(app, apiKey), 401)
    t.equal((await signIn(app, stranger.email)).statusCode, 401)
    t.match(await identitiesOf(accessToken), [{ subject: provider.account.sub, provider: 'trusted' }])
    const methods = (await call(app, 'GET', '/account/methods', undefined, bearer(accessToken))).json()
      .results
    t.strictSame(
      methods.map(({ method }: { method: string }) => method),
      ['identity'],
    )
    t.ok(totp)
    provider.account = ofStranger
    t.not((await program.signIn()).json().user?.id, stranger.id)
    const types = await typesOf(stranger.id)
    t.strictSame(types.slice(types.indexOf('email.verified')), [
      'email.verified',
      'password.removed',
      'sessions.ended',
      'totp.removed',
      'identity.removed',
      'passkey.removed',
      'api-key.revoked',
      'user.signed-in',
      'identity.linked',
    ])
    const [mail] = await mails.to(stranger.email, 'accessRemoved')
    t.match(mail?.text, /Accounts of other providers/)
    await mails.to(stranger.email, 'identityLinked')
  })

  t.test('link: verified-email keeps everything of a confirmed account, and asks for its code', async t => {
    const user = await confirmedUser(app)
    const totp = await addTotp(app, user.token)
    provider.account = freshAccount({ email: user.email })
    const callback = await trusted.callback()
    errorsAt(t, await trusted.finish(callback), 401, ['code'])
    t.strictSame(await identitiesOf(user.token), [], 'not linked without the code')
    clock.advance(MINUTE)
    const signedIn = await trusted.finish({ ...callback, code: totp.code() })
    t.equal(signedIn.json().user?.id, user.id, signedIn.body)
    t.equal(await accountStatus(app, user.token), 200)
    t.match(await identitiesOf(user.token), [{ subject: provider.account.sub }])
  })

  t.test('link: verified-email needs a provider that is authoritative for the domain', async t => {
    const user = await confirmedUser(app)
    provider.account = freshAccount({ email: user.email })
    globalErrorOf(t, await programOf(app, provider, 'timid').signIn(), 409)
    provider.account = freshAccount({ email: user.email, email_verified: 'true' })
    globalErrorOf(t, await trusted.signIn(), 409)
    await updateUser(app, user.id, { disabled: true })
    provider.account = freshAccount({ email: user.email })
    globalErrorOf(t, await trusted.signIn(), 403)
    await updateUser(app, user.id, { disabled: false })
    t.equal((await trusted.signIn()).json().user?.id, user.id)
  })

  t.test('D1: an address that only looks like that of an account is none', async t => {
    const user = await confirmedUser(app, { email: freshEmail('jack') })
    for (const email of [user.email.replace('k', '\u212a'), `\ufeff${user.email}`, `${user.email}\u00a0`]) {
      provider.account = freshAccount({ email })
      for (const way of [trusted, program])
        t.match((await way.signIn()).json(), { errors: { global: [/e-mail/] } }, JSON.stringify(email))
    }
    t.strictSame(await identitiesOf(user.token), [])
  })

  t.test(
    'L4 an identity that opened the account without a proof of the address does not sign in any more',
    async t => {
      const email = freshAccount().email
      provider.account = freshAccount({ email, email_verified: false })
      const ofStranger = provider.account
      const { user, accessToken } = (await program.signIn()).json()
      t.equal(user.emailVerified, false)
      second.account = freshAccount({ email })
      const owner = await programOf(app, second, 'second').signIn()
      t.match(owner.json().user, { id: user.id, emailVerified: true }, owner.body)
      t.equal(await accountStatus(app, accessToken), 401)
      provider.account = ofStranger
      globalErrorOf(t, await program.signIn(), 409)
    },
  )

  t.test('a new account with an unconfirmed address gets a link to confirm it', async t => {
    provider.account = freshAccount({ email_verified: false })
    const { user } = (await program.signIn()).json()
    const [mail] = await mails.to(user.email, 'verification')
    t.ok(mail)
    t.ok((await typesOf(user.id)).includes('email.verification-requested'))
  })

  t.test('S6 after a 409 the user signs in to the account and links, once', async t => {
    const [user, another] = [await confirmedUser(app), await confirmedUser(app)]
    provider.account = freshAccount({ email: user.email })
    const { url, flow } = await program.callback()
    globalErrorOf(t, await program.finish({ url, flow }), 409)
    const link = (token: string, body: object = { provider: 'test', flow }) =>
      call(app, 'POST', '/account/identities/link', body, bearer(token))
    globalErrorOf(t, await link(another.token), 400)
    globalErrorOf(t, await link(user.token, { provider: 'trusted', flow }), 400)
    globalErrorOf(t, await link(user.token, { provider: 'test', flow: 'wrong' }), 400)
    globalErrorOf(t, await link(user.token, { provider: 'nothing', flow }), 404)
    const responses = await Promise.all(Array.from({ length: 10 }, () => link(user.token)))
    const statuses = responses.map(({ statusCode }) => statusCode).toSorted()
    t.strictSame(statuses, [201, ...Array(9).fill(400)], 'once')
    t.equal((await program.signIn()).json().user.id, user.id)
    provider.account = freshAccount({ email: another.email })
    const late = await program.callback()
    globalErrorOf(t, await program.finish(late), 409)
    clock.advance(10 * MINUTE)
    const { accessToken } = (await signIn(app, another.email)).json()
    globalErrorOf(t, await link(accessToken, { provider: 'test', flow: late.flow }), 400)
  })

  t.test('L11 what one flow has confirmed is not consumed in the flow of another identity', async t => {
    const [user, victim] = [await confirmedUser(app), await confirmedUser(app)]
    provider.account = freshAccount({ email: user.email })
    const first = await program.callback()
    globalErrorOf(t, await program.finish(first), 409)
    provider.account = freshAccount({ email: victim.email })
    const other = await program.callback()
    globalErrorOf(t, await program.finish(other), 409)
    globalErrorOf(t, await program.finish({ url: first.url, flow: other.flow }), 400)
    const body = { provider: 'test', flow: first.flow }
    globalErrorOf(t, await call(app, 'POST', '/account/identities/link', body, bearer(victim.token)), 400)
    t.strictSame(await identitiesOf(victim.token), [])
  })

  t.test('L12 after unlinking, the first confirmation links nothing again', async t => {
    const user = await confirmedUser(app)
    provider.account = freshAccount()
    const started = await call(app, 'POST', '/account/identities', { provider: 'test' }, bearer(user.token))
    const { authorizationUrl, flow } = started.json()
    const callback = { url: await provider.authorize(authorizationUrl), flow }
    const linked = await program.finish(callback, bearer(user.token))
    t.equal((await unlink(user.token, linked.json().id)).statusCode, 204)
    globalErrorOf(t, await program.finish(callback, bearer(user.token)), 400)
    t.strictSame(await identitiesOf(user.token), [])
  })

  t.test('L13 a link that was begun in one session ends in no other, and in none', async t => {
    const [attacker, victim] = [await signUp(app), await signUp(app)]
    const begin = async () => {
      const started = await call(
        app,
        'POST',
        '/account/identities',
        { provider: 'test' },
        bearer(attacker.token),
      )
      const { authorizationUrl, flow } = started.json()
      return { url: await provider.authorize(authorizationUrl), flow }
    }
    provider.account = freshAccount()
    const again = (await signIn(app, attacker.email)).json().accessToken
    const apiKey = (await createKey(app, attacker.token)).token
    const before = provider.requests.filter(each => each === 'POST /token').length
    const impersonated = (await impersonate(app, attacker.id)).json().accessToken
    for (const headers of [...[victim.token, again, apiKey, impersonated].map(bearer), {}])
      globalErrorOf(t, await program.finish(await begin(), headers), 400)
    t.equal(provider.requests.filter(each => each === 'POST /token').length, before)
    for (const { token } of [attacker, victim]) t.strictSame(await identitiesOf(token), [])
    const ended = await begin()
    await call(app, 'POST', '/account/sign-out', undefined, bearer(attacker.token))
    globalErrorOf(t, await program.finish(ended, bearer(attacker.token)), 400)
  })

  t.test('S4 what happens while a callback waits for the provider counts', async t => {
    const during = (action: () => Promise<{ readonly statusCode: number }>) => {
      provider.changeToken = async claims => {
        t.ok((await action()).statusCode < 300)
        return claims
      }
    }
    const remove = (id: string) => call(instance, 'DELETE', `/admin/users/${id}`, undefined, asAdmin)
    const disable = (id: string) => updateUser(instance, id, { disabled: true })
    const opened = await openedByProvider()
    during(() => disable(opened.id))
    globalErrorOf(t, await program.signIn(), 403)
    provider.changeToken = null
    const removed = await openedByProvider()
    during(() => remove(removed.id))
    t.not((await program.signIn()).json().user.id, removed.id)
    const [other, address] = [await signUp(app), freshAccount()]
    provider.account = address
    during(() => updateUser(instance, other.id, { email: String(address.email) }))
    globalErrorOf(t, await program.signIn(), 409)
    const endings = [
      (user: SignedUp) => disable(user.id),
      (user: SignedUp) => remove(user.id),
      (user: SignedUp) => call(instance, 'POST', '/account/sign-out', undefined, bearer(user.token)),
      (user: SignedUp) => call(instance, 'DELETE', `/admin/users/${user.id}/sessions`, undefined, asAdmin),
    ]
    for (const end of endings) {
      const user = await signUp(app)
      provider.account = freshAccount()
      during(() => end(user))
      globalErrorOf(t, await program.link(user.token), 401)
      provider.changeToken = null
      t.not((await program.signIn()).json().user.id, user.id, 'nothing is linked')
    }
  })

  t.test('a link ends with the proof of identity that it began with', async t => {
    const user = await signUp(app)
    provider.account = freshAccount()
    const started = await call(app, 'POST', '/account/identities', { provider: 'test' }, bearer(user.token))
    const { authorizationUrl, flow } = started.json()
    const url = await provider.authorize(authorizationUrl)
    await addTotp(app, user.token)
    globalErrorOf(t, await program.finish({ url, flow }, bearer(user.token)), 401)
    t.strictSame(await identitiesOf(user.token), [])
  })

  t.test('L14 two users link one identity at the same time on two instances: one succeeds', async t => {
    for (let round = 0; round < 4; round += 1) {
      provider.account = freshAccount()
      const users = [await signUp(app), await signUp(app)]
      const programs = [program, programOf(instance, provider)]
      const begun = []
      for (const [index, user] of users.entries()) {
        const started = await call(
          app,
          'POST',
          '/account/identities',
          { provider: 'test' },
          bearer(user.token),
        )
        const { authorizationUrl, flow } = started.json()
        const callback = { url: await provider.authorize(authorizationUrl), flow }
        begun.push(() => programs[index]?.finish(callback, bearer(user.token)))
      }
      const responses = await Promise.all(begun.map(finish => finish()))
      t.strictSame(responses.map(response => response?.statusCode).toSorted(), [201, 409])
    }
  })

  t.test('callbacks of one unknown identity at the same time open one account, and all sign in', async t => {
    const programs = [program, programOf(instance, provider)] as const
    for (let round = 0; round < 4; round += 1) {
      provider.account = freshAccount()
      const callbacks = await Promise.all(Array.from({ length: 8 }, () => program.callback()))
      const responses = await Promise.all(
        callbacks.map((callback, index) => programs[index % 2 === 0 ? 0 : 1].finish(callback)),
      )
      for (const response of responses) t.equal(response.statusCode, 200, response.body)
      t.equal(new Set(responses.map(response => response.json().user?.id)).size, 1)
    }
  })

  t.test('L15 the last way to sign in stays, also if two are removed at the same time', async t => {
    const user = await openedByProvider()
    const [only] = await identitiesOf(user.token)
    globalErrorOf(t, await unlink(user.token, only.id), 409)
    const url = `/admin/users/${user.id}/identities/${only.id}`
    globalErrorOf(t, await call(app, 'DELETE', url, undefined, asAdmin), 409)
    for (let round = 0; round < 4; round += 1) {
      const each = await openedByProvider()
      provider.account = freshAccount()
      t.equal((await program.link(each.token)).statusCode, 201)
      const [one, two] = await identitiesOf(each.token)
      const responses = await Promise.all([unlink(each.token, one.id), unlink(each.token, two.id, instance)])
      t.strictSame(responses.map(({ statusCode }) => statusCode).toSorted(), [204, 409])
    }
    const withPassword = await signUp(app)
    provider.account = freshAccount()
    await program.link(withPassword.token)
    const [linked] = await identitiesOf(withPassword.token)
    const both = await Promise.all([
      unlink(withPassword.token, linked.id),
      call(instance, 'DELETE', '/account/password', undefined, bearer(withPassword.token)),
    ])
    t.strictSame(both.map(({ statusCode }) => statusCode).toSorted(), [204, 409])
  })

  t.test('L15 an identity of a provider that is not configured is no way in', async t => {
    const user = await openedByProvider()
    second.account = freshAccount()
    t.equal((await programOf(app, second, 'second').link(user.token)).statusCode, 201)
    const others = { ...env, ...providersEnv([second.entry({ id: 'second' })], issuers), PUBLIC_URL }
    const reduced = await build(t, { env: others, clock: clock.now })
    const list = await identitiesOf(user.token)
    const [ofSecond, ofFirst] = list
    globalErrorOf(t, await unlink(user.token, ofSecond.id, reduced), 409)
    t.equal((await unlink(user.token, ofFirst.id, reduced)).statusCode, 204)
  })

  t.test(
    'L16 a provider that is removed while a flow is open refuses the callback; identities stay',
    async t => {
      const user = await openedByProvider()
      const callback = await program.callback()
      const { OIDC_PROVIDERS: _, ...without } = env
      const app2 = await build(t, { env: without, clock: clock.now })
      globalErrorOf(t, await programOf(app2, provider).finish(callback), 404)
      globalErrorOf(t, await call(app2, 'POST', '/account/sign-in/providers/test', {}), 404)
      t.strictSame((await app2.inject('/account/sign-in/providers')).json(), { results: [] })
      const listed = await call(app2, 'GET', '/account/identities', undefined, bearer(user.token))
      t.match(listed.json().results, [{ subject: user.account.sub }])
      const methods = await call(app2, 'GET', '/account/methods', undefined, bearer(user.token))
      t.strictSame(methods.json().results, [])
      const moved = providersEnv([second.entry({ id: 'test' })], issuers)
      const app3 = await build(t, {
        env: { ...moved, PUBLIC_URL, DATABASE_URL },
        clock: clock.now,
      })
      globalErrorOf(
        t,
        await programOf(app3, second).finish(callback),
        400,
        'the id is another provider’s now',
      )
      provider.account = user.account
      t.equal((await program.signIn()).json().user.id, user.id, 'it signs in again once it is configured')
    },
  )

  t.test('L18 nothing of a deleted user attaches to another one', async t => {
    const user = await openedByProvider()
    const callback = await program.callback()
    await call(app, 'DELETE', `/admin/users/${user.id}`, undefined, asAdmin)
    const next = { email: user.email, id: user.id, emailVerified: true }
    const imported = await app.inject({
      method: 'POST',
      url: '/admin/users/import',
      headers: { ...asAdmin, 'content-type': 'application/x-ndjson' },
      payload: `${JSON.stringify(next)}\n`,
    })
    t.match(imported.body, /"created"/)
    globalErrorOf(t, await program.finish(callback), 409)
    const { results } = (
      await call(app, 'GET', `/admin/users/${user.id}/identities`, undefined, asAdmin)
    ).json()
    t.strictSame(results, [])
  })

  t.test(
    'L20 the notice of an unlinked identity goes to the address of the account, which stays confirmed',
    async t => {
      const user = await openedByProvider()
      await updateUser(app, user.id, { email: freshAccount().email as string })
      second.account = freshAccount()
      await programOf(app, second, 'second').link(user.token)
      const [, ofProvider] = await identitiesOf(user.token)
      t.equal((await unlink(user.token, ofProvider.id)).statusCode, 204)
      const account = (await call(app, 'GET', '/account', undefined, bearer(user.token))).json()
      t.not(account.email, user.email)
      await mails.to(account.email, 'identityRemoved')
      await updateUser(app, user.id, { emailVerified: true })
      const [left] = await identitiesOf(user.token)
      globalErrorOf(t, await unlink(user.token, left.id), 409)
      const after = (await call(app, 'GET', '/account', undefined, bearer(user.token))).json()
      t.equal(after.emailVerified, true, 'no identity decides it')
    },
  )

  t.test('administrators list identities with users:read, and unlink them with users:identity', async t => {
    const user = await signUp(app)
    provider.account = freshAccount()
    const { id } = (await program.link(user.token)).json()
    const url = `/admin/users/${user.id}/identities`
    const reader = await createAdminKey(app, ['users:read'])
    const writer = await createAdminKey(app, ['users:write'])
    const identity = await createAdminKey(app, ['users:identity'])
    t.match((await call(app, 'GET', url, undefined, reader.headers)).json().results, [{ id }])
    globalErrorOf(t, await call(app, 'GET', url, undefined, identity.headers), 403)
    for (const { headers } of [reader, writer])
      globalErrorOf(t, await call(app, 'DELETE', `${url}/${id}`, undefined, headers), 403)
    globalErrorOf(t, await call(app, 'GET', `/admin/users/${UNKNOWN_ID}/identities`, undefined, asAdmin), 404)
    globalErrorOf(
      t,
      await call(app, 'DELETE', `/admin/users/${UNKNOWN_ID}/identities/${id}`, undefined, asAdmin),
      404,
    )
    globalErrorOf(t, await call(app, 'DELETE', `${url}/${UNKNOWN_ID}`, undefined, asAdmin), 404)
    const { id: stranger } = await signUp(app)
    globalErrorOf(
      t,
      await call(app, 'DELETE', `/admin/users/${stranger}/identities/${id}`, undefined, asAdmin),
      404,
    )
    t.equal((await call(app, 'DELETE', `${url}/${id}`, undefined, identity.headers)).statusCode, 204)
    const [event] = await allEvents(app, { userId: user.id, type: 'identity.removed' })
    t.match(event, { actor: { type: 'adminKey' }, details: { identity: id } })
    await mails.to(user.email, 'identityRemoved')
  })

  t.test('another user cannot see or unlink an identity', async t => {
    const [user, stranger] = [await signUp(app), await signUp(app)]
    provider.account = freshAccount()
    const { id } = (await program.link(user.token)).json()
    t.strictSame(await identitiesOf(stranger.token), [])
    globalErrorOf(t, await unlink(stranger.token, id), 404)
  })

  t.test('identities and flows end with the user and in time', async t => {
    const user = await openedByProvider()
    await call(app, 'DELETE', '/account', undefined, bearer(user.token))
    provider.account = user.account
    const again = await program.signIn()
    t.not(again.json().user.id, user.id)
    await program.start()
    const flows = async () => (await select(DATABASE_URL, 'SELECT id FROM identity_flows')).length
    t.ok((await flows()) > 0)
    clock.advance(10 * MINUTE + 1)
    await build(t, { env, clock: clock.now, cleanUpPace: { startWithin: 1, interval: 10, pause: 1 } })
    t.equal(await until(flows, left => left === 0, 30_000), 0, 'also those that nobody comes back to')
  })
})
