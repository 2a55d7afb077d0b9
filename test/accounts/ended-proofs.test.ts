/** What was begun with a proof of identity ends with that proof (docs/design.md, "Proof of identity"). */
import t from 'tap'
import { call, changeEmail, forgot, reset } from '../support/account-routes.ts'
import { removeFactors } from '../support/admin-routes.ts'
import {
  addTotp,
  beginTotp,
  confirmTotp,
  STEP,
  signInWith as signInWithCode,
  totpOf,
} from '../support/authenticator-apps.ts'
import {
  asAdmin,
  bearer,
  confirmedUser,
  freshEmail,
  manualClock,
  PASSWORD,
  updateUser,
} from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { freshAccount, programOf, providersEnv, startProvider } from '../support/identity-provider.ts'
import { mailbox } from '../support/mailbox.ts'
import { creationOptions, listPasskeys, postPasskey, register, removePasskey } from '../support/passkeys.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'
import { execute } from '../support/stored-rows.ts'

const PUBLIC_URL = 'http://localhost:3000'

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const provider = await startProvider(t, { ids: ['test'], publicUrl: PUBLIC_URL })
  const DATABASE_URL = await newDatabase(t)
  const env = { ...providersEnv([provider.entry()], [provider.issuer]), PUBLIC_URL, DATABASE_URL }
  const clock = manualClock(Date.now())
  const app = await build(t, { env, clock: clock.now })
  const program = programOf(app, provider)
  const mails = mailbox(app)
  const send = (method: 'POST' | 'PUT' | 'DELETE', url: string, token: string, body?: object) =>
    call(app, method, url, body, bearer(token))
  const list = async (url: string, token: string) =>
    (await call(app, 'GET', url, undefined, bearer(token))).json().results

  const beginLink = async (token: string) => {
    provider.account = freshAccount()
    const started = (await send('POST', '/account/identities', token, { provider: 'test' })).json()
    const url = await provider.authorize(started.authorizationUrl)
    return () => program.finish({ url, flow: started.flow }, bearer(token))
  }

  /**
   * Begins what waits behind a proof. @returns the requests that complete it.
   * @param linking whether with a link to a provider, which costs as much as all others together.
   */
  const beginAll = async (token: string, hasApp: boolean, linking: boolean) => {
    const email = freshEmail('new')
    t.equal((await changeEmail(app, token, { email })).statusCode, 202)
    const mailed = await mails.token(email, 'emailChange')
    const options = (await creationOptions(app, token)).json()
    const credential = new SoftwareAuthenticator().create(options)
    const link = linking && (await beginLink(token))
    const secret = hasApp ? null : await beginTotp(app, token)
    const requests: Record<string, (session: string) => Promise<{ readonly statusCode: number }>> = {
      'e-mail': session => send('POST', '/account/verify-email', session, { token: mailed }),
      passkey: () => postPasskey(app, token, { credential }),
      ...(link && { identity: link }),
      ...(secret && { app: () => confirmTotp(app, token, secret.code()) }),
    }
    return requests
  }

  type User = Awaited<ReturnType<typeof newUser>>

  /** With a password and a passkey; signed in twice. */
  const newUser = async ({ hasApp = false, hasIdentity = false } = {}) => {
    const { id, email, token } = await confirmedUser(app)
    const passkey = await register(app, token)
    provider.account = freshAccount()
    const identity: string | null = hasIdentity ? (await program.link(token)).json().id : null
    const added = hasApp ? await addTotp(app, token) : null
    clock.advance(STEP)
    const other: string = (await signInWithCode(app, email, added?.code())).json().accessToken
    return { id, email, token, other, passkey: passkey.id, identity }
  }

  const RESET = 'another long pass phrase 9'
  const ENDS: Readonly<Record<string, (user: User) => Promise<unknown>>> = {
    'an administrator removes the factors': ({ id }) => removeFactors(app, id),
    'an app is added': ({ token }) => addTotp(app, token),
    'a passkey is added': ({ token }) => register(app, token),
    'a passkey is removed': ({ token, passkey }) => removePasskey(app, token, passkey),
    'a passkey is removed, and other sessions end': ({ token, passkey }) =>
      removePasskey(app, token, passkey, '?endOthers=true'),
    'an identity is linked': ({ token }) => {
      provider.account = freshAccount()
      return program.link(token)
    },
    'an identity is unlinked': ({ token, identity }) =>
      send('DELETE', `/account/identities/${identity}`, token),
    'an administrator unlinks an identity': ({ id, identity }) =>
      call(app, 'DELETE', `/admin/users/${id}/identities/${identity}`, undefined, asAdmin),
    'the password is removed': ({ token }) => send('DELETE', '/account/password', token),
    'the password is changed': ({ token }) =>
      send('PUT', '/account/password', token, { currentPassword: PASSWORD, newPassword: RESET }),
    'the password is reset': async ({ email }) => {
      await forgot(app, email)
      return reset(app, await mails.token(email, 'passwordReset'), RESET)
    },
    'the other sessions end': ({ token }) => send('DELETE', '/account/sessions', token),
    'that session is ended': async ({ token }) => {
      const [{ id }] = (await list('/account/sessions', token)).filter(
        (session: { current: boolean }) => !session.current,
      )
      return send('DELETE', `/account/sessions/${id}`, token)
    },
    'that session signs out': ({ other }) => send('POST', '/account/sign-out', other),
    'an administrator ends all sessions': ({ id }) =>
      call(app, 'DELETE', `/admin/users/${id}/sessions`, undefined, asAdmin),
    'an administrator disables and enables the account': async ({ id }) => {
      await updateUser(app, id, { disabled: true })
      return updateUser(app, id, { disabled: false })
    },
  }
  const ENDS_WITH_APP: typeof ENDS = {
    'an administrator removes the factors': ({ id }) => removeFactors(app, id),
    'the app is removed': ({ token }) => send('DELETE', '/account/totp', token),
    'recovery codes are replaced': ({ token }) => send('POST', '/account/recovery-codes', token, {}),
  }

  // A way ends the rows of one table, whatever they are of, and the mailed tokens; what completes a change looks for its row. So the costly
  // link meets one way of each: the proof ends, all proofs end, the session ends, and that of a user with an app.
  const LINKED = new Set([
    'a passkey is removed',
    'an administrator removes the factors',
    'the other sessions end',
    'the app is removed',
  ])

  for (const [hasApp, ends] of [
    [false, ENDS],
    [true, ENDS_WITH_APP],
  ] as const)
    for (const [what, end] of Object.entries(ends))
      t.test(`D2: ${what}${hasApp ? ' of a user with an app' : ''}`, async t => {
        const user = await newUser({ hasApp, hasIdentity: what.includes('unlink') })
        const begun = await beginAll(user.other, hasApp, LINKED.has(what))
        const response = (await end(user)) as { readonly statusCode?: number }
        t.match(response.statusCode ?? 200, /^20[0-4]$/)
        const password = /changed|reset/.test(what) ? RESET : PASSWORD
        const again = (await call(app, 'POST', '/account/sign-in', { email: user.email, password })).json()
        for (const [name, complete] of Object.entries(begun)) {
          const { statusCode } = await complete(again.accessToken ?? user.token)
          t.ok([400, 401, 409].includes(statusCode), `${name}: ${statusCode}`)
        }
        const { email } = (await call(app, 'GET', `/admin/users/${user.id}`, undefined, asAdmin)).json()
        t.equal(email, user.email)
      })

  t.test('D2: what the acting session has begun stays', async t => {
    // An app makes a proof need a code, so it comes last of what another proof could not complete.
    const remaining = ['passkey', 'app', 'e-mail']
    for (const [what, names] of Object.entries({
      'an app is added': ['e-mail'],
      'a passkey is added': remaining,
      'a passkey is removed': ['identity', ...remaining],
      'an identity is unlinked': remaining,
      'the other sessions end': remaining,
      'that session signs out': remaining,
    })) {
      const user = await newUser({ hasIdentity: what.includes('unlink') })
      const begun = await beginAll(user.token, false, names.includes('identity'))
      await ENDS[what]?.(user)
      for (const name of names) {
        const { statusCode } = (await begun[name]?.(user.token)) ?? {}
        t.match(statusCode, /^20[0-4]$/, `${what}: ${name}`)
      }
    }
  })

  t.test('D2: while a callback waits for its provider, a proof ends', async t => {
    const user = await newUser()
    provider.account = freshAccount()
    provider.changeToken = async claims => {
      t.equal((await removeFactors(app, user.id)).statusCode, 204)
      return claims
    }
    t.equal((await program.link(user.other)).statusCode, 401)
    provider.changeToken = null
    t.same(await list('/account/identities', user.token), [])
  })

  t.test('D2: a change from before the upgrade ends with any proof', async t => {
    for (const ends of [false, true]) {
      const user = await newUser()
      const begun = await beginAll(user.token, false, !ends)
      await execute(DATABASE_URL, 'DELETE FROM pending_changes')
      if (ends) await removePasskey(app, user.token, user.passkey)
      const status = (await begun['e-mail']?.(user.token))?.statusCode
      t.equal(status, ends ? 400 : 200)
      delete begun['e-mail']
      for (const [name, complete] of Object.entries(begun))
        t.ok([400, 401, 409].includes((await complete(user.token)).statusCode), name)
    }
  })

  t.test('D2: the end of all sessions ends what an expired one has begun', async t => {
    for (const byAdmin of [false, true]) {
      const user = await newUser()
      const begun = await beginAll(user.other, false, true)
      // As the clean-up does.
      const others = byAdmin ? '' : 'AND id IN (SELECT session_id FROM pending_changes)'
      const key = `(SELECT key FROM users WHERE id = '${user.id}')`
      await execute(DATABASE_URL, `DELETE FROM sessions WHERE user_key = ${key} ${others}`)
      const ended = byAdmin
        ? await call(app, 'DELETE', `/admin/users/${user.id}/sessions`, undefined, asAdmin)
        : await send('DELETE', '/account/sessions', user.token)
      t.equal(ended.statusCode, 204)
      const again = (await signInWithCode(app, user.email)).json().accessToken
      t.equal((await begun['e-mail']?.(again))?.statusCode, 400)
    }
  })

  t.test('D2: without a factor the administrator ends what would become one', async t => {
    const { id, token } = await confirmedUser(app)
    const begun = await beginAll(token, false, true)
    t.equal((await removeFactors(app, id)).statusCode, 204)
    for (const [name, complete] of Object.entries(begun))
      t.ok([400, 401, 409].includes((await complete(token)).statusCode), name)
    t.same(await listPasskeys(app, token), [])
    t.match(await totpOf(app, token), { confirmedAt: null })
  })
})
