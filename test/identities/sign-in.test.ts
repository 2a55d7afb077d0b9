import t from 'tap'
import { call } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
import { addTotp, STEP } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  freshEmail,
  manualClock,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsAt, globalErrorOf } from '../support/error-response.ts'
import { freshAccount, programOf, providersEnv, startProvider } from '../support/identity-provider.ts'
import { readMetrics } from '../support/metrics.ts'

const MINUTE = 60_000

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const provider = await startProvider(t, { ids: ['test', 'closed', 'strong'] })
  const other = await startProvider(t, { ids: ['other'] })
  const env = {
    ...providersEnv(
      [
        provider.entry(),
        other.entry({ id: 'other', name: 'Other' }),
        provider.entry({ id: 'closed', signUp: false }),
        provider.entry({ id: 'strong', isMultiFactor: { amr: ['hwk'], acr: ['urn:two'] } }),
      ],
      [provider.issuer, other.issuer],
    ),
    DATABASE_URL: await newDatabase(t),
  }
  const clock = manualClock(Date.now())
  const app = await build(t, { env, clock: clock.now })
  const program = programOf(app, provider)
  t.afterEach(() => {
    provider.changeToken = null
  })

  const tokenRequests = () => provider.requests.filter(each => each === 'POST /token').length
  const usersWith = async (email: unknown): Promise<number> => {
    const url = `/admin/users?search=${encodeURIComponent(String(email))}`
    return (await app.inject({ url, headers: asAdmin })).json().results.length
  }
  t.test('an unknown identity opens an account, a known one signs in', async t => {
    provider.account = freshAccount({ given_name: 'Ann', family_name: 'Lee', locale: 'de-AT' })
    const first = await program.signIn()
    t.equal(first.statusCode, 200, first.body)
    const { user, accessToken } = first.json()
    t.match(user, {
      email: provider.account.email,
      emailVerified: true,
      firstName: 'Ann',
      lastName: 'Lee',
      locale: 'de-AT',
    })
    t.equal(await accountStatus(app, accessToken), 200)
    clock.advance(MINUTE)
    const second = await program.signIn()
    t.equal(second.json().user?.id, user.id, second.body)
    const methods = await call(app, 'GET', '/account/methods', undefined, bearer(accessToken))
    t.match(methods.json().results, [
      { method: 'identity', label: `test ${provider.account.email}`, isFactor: false },
    ])
    const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))
    t.match(sessions.json().results, [{ method: 'identity', amr: ['fed'] }, { method: 'identity' }])
    const events = await allEvents(app, { userId: user.id })
    t.strictSame(events.map(({ type }) => type).toReversed(), [
      'user.signed-up',
      'identity.linked',
      'user.signed-in',
    ])
    t.match(events[0]?.details, { method: 'identity', identity: events[1]?.details?.identity })
    const metrics = await readMetrics(app)
    t.ok(metrics.sum('gatehouse_sign_ins_total', { method: 'identity', outcome: 'succeeded' }) >= 2)
  })

  t.test('the providers are listed in the order of the settings; an unknown one is 404', async t => {
    const { results } = (await app.inject('/account/sign-in/providers')).json()
    t.strictSame(
      results.map(({ id }: { id: string }) => id),
      ['test', 'other', 'closed', 'strong'],
    )
    globalErrorOf(t, await call(app, 'POST', '/account/sign-in/providers/nothing', {}), 404)
    globalErrorOf(t, await programOf(app, provider, 'nothing').finish({ flow: 'x' }), 404)
  })

  t.test('K9 no user registers a provider: only the settings do', async t => {
    const { token } = await signUp(app)
    const body = provider.entry({ id: 'mine' })
    for (const path of ['/account/sign-in/providers', '/account/sign-in/providers/mine', '/admin/providers'])
      for (const method of ['POST', 'PUT', 'DELETE'] as const)
        t.match(
          (await call(app, method, path, body, bearer(token))).statusCode,
          /^40[045]$/,
          `${method} ${path}`,
        )
    t.equal((await app.inject('/account/sign-in/providers')).json().results.length, 4)
  })

  t.test('the e-mail at the provider may change: the identity stays', async t => {
    provider.account = freshAccount()
    const { user } = (await program.signIn()).json()
    provider.account = { ...provider.account, email: freshEmail() }
    const again = await program.signIn()
    t.match(again.json().user, { id: user.id, email: user.email })
    const { results } = (
      await call(app, 'GET', '/account/identities', undefined, bearer(again.json().accessToken))
    ).json()
    t.match(results, [{ subject: provider.account.sub, email: provider.account.email }])
  })

  t.test('S4 a disabled account is 403', async t => {
    provider.account = freshAccount()
    const { user } = (await program.signIn()).json()
    const callback = await program.callback()
    await updateUser(app, user.id, { disabled: true })
    globalErrorOf(t, await program.finish(callback), 403)
  })

  t.test('a flow ends after ten minutes', async t => {
    provider.account = freshAccount()
    const callback = await program.callback()
    clock.advance(10 * MINUTE)
    globalErrorOf(t, await program.finish(callback), 400)
  })

  t.test(
    'O1 a callback without state, or with a wrong one, is 400 without a token request (ensure-authorization-response-with-invalid-state-fails)',
    async t => {
      provider.account = freshAccount()
      const { url, flow } = await program.callback()
      const before = tokenRequests()
      const changed = (change: (query: URLSearchParams) => void) => {
        const copy = new URL(url)
        change(copy.searchParams)
        return copy.href
      }
      for (const wrong of [
        changed(query => query.delete('state')),
        changed(query => query.set('state', 'wrong')),
        changed(query => query.set('state', '')),
        'nonsense',
        'https://elsewhere.example/',
        url.replace('https://', 'http://'),
      ])
        globalErrorOf(t, await program.finish({ url: wrong, flow }), 400)
      globalErrorOf(t, await program.finish({ url, flow: 'wrong' }), 400)
      globalErrorOf(t, await program.finish({ flow }), 400)
      t.equal(tokenRequests(), before)
      t.equal((await program.finish({ url, flow })).statusCode, 200, 'the flow of the owner still works')
    },
  )

  t.test('O3 one callback, sent 50 times at once on two instances, opens one session', async t => {
    const second = await build(t, { env, clock: clock.now })
    const instances = [program, programOf(second, provider)]
    provider.account = freshAccount()
    const callback = await program.callback()
    const before = tokenRequests()
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => instances[index % 2]?.finish(callback)),
    )
    const statuses = responses.map(response => response?.statusCode).toSorted()
    t.strictSame(statuses, [200, ...Array(49).fill(400)])
    t.equal(tokenRequests() - before, 1)
  })

  t.test('O13 a user with an authenticator app is asked for a code', async t => {
    provider.account = freshAccount()
    const { accessToken, user } = (await program.signIn()).json()
    const app1 = await addTotp(app, accessToken)
    clock.advance(STEP)
    const callback = await program.callback()
    const before = tokenRequests()
    errorsAt(t, await program.finish(callback), 401, ['code'])
    errorsAt(t, await program.finish({ ...callback, code: '000000' }), 401, ['code'])
    errorsAt(t, await program.finish(callback), 401, ['code'])
    t.equal(tokenRequests() - before, 1, 'the provider is asked once')
    const [right, wrongUrl] = [app1.code(), callback.url.replace('state=', 'state=x')]
    globalErrorOf(t, await program.finish({ ...callback, url: wrongUrl, code: right }), 400)
    const [one, another] = await Promise.all([
      program.finish({ ...callback, code: right }),
      program.finish({ flow: callback.flow, code: right }),
    ])
    t.strictSame(
      [one, another].map(({ statusCode }) => statusCode === 200).toSorted(),
      [false, true],
      one.body,
    )
    const signedIn = one.statusCode === 200 ? one : another
    t.equal(signedIn.json().user.id, user.id)
    const sessions = await call(
      app,
      'GET',
      '/account/sessions',
      undefined,
      bearer(signedIn.json().accessToken),
    )
    t.match(sessions.json().results[0], { amr: ['fed', 'otp', 'mfa'], current: true })
    globalErrorOf(t, await program.finish({ ...callback, code: right }), 400)
    clock.advance(STEP)
    const together = await program.callback()
    t.equal((await program.finish({ ...together, code: app1.code() })).statusCode, 200, 'in one request')
  })

  t.test('O13 isMultiFactor: two factors that the provider has verified count', async t => {
    const strong = programOf(app, provider, 'strong')
    provider.account = freshAccount()
    const { accessToken } = (await program.signIn()).json()
    await addTotp(app, accessToken)
    errorsAt(t, await strong.signIn(), 401, ['code'])
    for (const claims of [{ amr: ['pwd'] }, { amr: 'hwk' }, { acr: 'urn:one' }]) {
      provider.changeToken = token => ({ ...token, ...claims })
      errorsAt(t, await strong.signIn(), 401, ['code'])
    }
    for (const claims of [{ amr: ['pwd', 'hwk'] }, { acr: 'urn:two' }]) {
      provider.changeToken = token => ({ ...token, ...claims })
      const signedIn = await strong.signIn()
      t.equal(signedIn.statusCode, 200, signedIn.body)
      const headers = bearer(signedIn.json().accessToken)
      const { results } = (await call(app, 'GET', '/account/sessions', undefined, headers)).json()
      t.match(results[0], { amr: ['fed', 'mfa'] })
      errorsAt(t, await program.signIn(), 401, ['code'])
    }
  })

  t.test('L6 an e-mail that is not verified exactly links and confirms nothing', async t => {
    const user = await signUp(app)
    await updateUser(app, user.id, { emailVerified: true })
    for (const email_verified of [false, undefined, 'true', 1, null, 'yes', [true]]) {
      provider.account = freshAccount({ email: user.email, email_verified })
      globalErrorOf(t, await program.signIn(), 409)
      provider.account = freshAccount({ email_verified })
      t.match((await program.signIn()).json().user, { emailVerified: false }, String(email_verified))
    }
  })

  t.test('L8 the same subject of another issuer is another identity', async t => {
    provider.account = freshAccount()
    other.account = freshAccount({ sub: provider.account.sub })
    const [one, two] = [await program.signIn(), await programOf(app, other, 'other').signIn()]
    t.equal(one.statusCode, 200)
    t.equal(two.statusCode, 200, two.body)
    t.not(one.json().user.id, two.json().user.id)
    const known = await programOf(app, provider, 'strong').signIn()
    t.equal(known.json().user.id, one.json().user.id, 'the name of the provider is not part of it')
  })

  t.test('L19 with signUp: false an unknown identity creates no user', async t => {
    const closed = programOf(app, provider, 'closed')
    provider.account = freshAccount()
    globalErrorOf(t, await closed.signIn(), 403)
    const callback = await closed.callback()
    globalErrorOf(t, await closed.finish(callback), 403)
    globalErrorOf(t, await closed.finish({ flow: callback.flow }), 400)
    t.equal(await usersWith(provider.account.email), 0)
    const { user } = (await program.signIn()).json()
    t.equal((await closed.signIn()).json().user.id, user.id, 'a known one signs in')
  })

  t.test(
    'R1 with REQUIRE_EMAIL_VERIFICATION only confirmed addresses open accounts, and nothing tells which exist',
    async t => {
      const providers = [provider.entry({ authoritativeFor: ['example.com'] })]
      const app = await build(t, {
        env: { ...providersEnv(providers, [provider.issuer]), REQUIRE_EMAIL_VERIFICATION: 'true' },
      })
      const program = programOf(app, provider)
      provider.account = freshAccount()
      const opened = await program.signIn()
      t.match(opened.json().user, { emailVerified: true }, opened.body)
      const responses = []
      for (const email of [opened.json().user.email, freshEmail()]) {
        provider.account = freshAccount({ email, email_verified: false })
        responses.push((await program.signIn()).body)
      }
      t.equal(responses[0], responses[1])
      provider.account = freshAccount({ email: 'ann@elsewhere.example' })
      globalErrorOf(t, await program.signIn(), 403)
    },
  )

  t.test('an account of a provider has no password, and signs in with none', async t => {
    provider.account = freshAccount()
    const { user } = (await program.signIn()).json()
    t.equal((await signIn(app, user.email)).statusCode, 401)
  })
})
