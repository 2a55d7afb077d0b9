/** `locale`: the language of a user's mails and pages, and a field like any other of `src/core/users/fields.ts`. */
import type { FastifyInstance } from 'fastify'
import type { Email } from 'postal-mime'
import t from 'tap'
import { ACCOUNT_MAILS } from '#core/accounts/mails'
import { accountOf, call, forgot, verify } from '../support/account-routes.ts'
import { asAdmin, bearer, freshEmail, PASSWORD, signUp } from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsAt } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox, tokenIn } from '../support/mailbox.ts'
import { until } from '../support/until.ts'

const INVALID = [
  'english',
  'x',
  'de_DE',
  'de-',
  'x-private',
  '1',
  '',
  'de\u0000',
  `de-${'a1b2c3d4-'.repeat(5)}x`,
]

const mailWith = async (app: FastifyInstance, address: string, subject: string): Promise<Email> => {
  const mails = mailbox(app)
  const [mail] = await until(
    async () =>
      (await mails.all()).filter(each => each.to?.[0]?.address === address && each.subject === subject),
    found => found.length > 0,
    60_000,
  )
  return mail as Email
}

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { hasher: quickHashing })

  /** A sign-up by a client that prefers these languages. */
  const signUpWith = (accepted: string | undefined, fields: object = {}, on = app) =>
    on.inject({
      method: 'POST',
      url: '/account/sign-up',
      headers: accepted === undefined ? {} : { 'accept-language': accepted },
      payload: { email: freshEmail(), password: PASSWORD, ...fields },
    })

  t.test('a sign-up takes the language of the body, else the first one of Accept-Language', async t => {
    for (const [accepted, fields, locale] of [
      ['de-de,en;q=0.8', {}, 'de-DE'],
      ['en;q=0.5, fr-CA', {}, 'fr-CA'],
      ['*, english;q=0.9, pt-br;q=0.1', {}, 'pt-BR'],
      ['de;q=0', {}, null],
      ['*', {}, null],
      [undefined, {}, null],
      ['de', { locale: ' EN-gb ' }, 'en-GB'],
      ['de', { locale: null }, null],
    ] as const)
      t.equal((await signUpWith(accepted, fields)).json().user.locale, locale, String(accepted))
  })

  t.test('users change and clear it, with an event; it is nobody else’s', async t => {
    const { id, email, token } = await signUp(app)
    const put = (payload: object) => call(app, 'PUT', '/account', payload, bearer(token))
    t.equal((await put({ locale: 'zh-hant-tw' })).json().locale, 'zh-Hant-TW')
    t.equal((await accountOf(app, token)).locale, 'zh-Hant-TW')
    const unchanged = await put({ locale: 'zh-Hant-tw' })
    t.equal(unchanged.headers.etag, '"2"', 'the same language is no change')
    const user = await call(app, 'GET', `/admin/users/${id}`, undefined, asAdmin)
    t.match(user.json(), { email, locale: 'zh-Hant-TW' })
    const profiles = await call(app, 'GET', '/users', undefined, bearer(token))
    for (const profile of profiles.json().results) t.notOk('locale' in profile)
    t.equal((await put({ locale: null })).json().locale, null)
    const events = await call(app, 'GET', `/admin/events?userId=${id}&type=user.changed`, undefined, asAdmin)
    t.match(events.json().results[0], { details: { fields: ['locale'] } })
  })

  t.test('what is no language is 400 at locale, everywhere', async t => {
    const { id, token } = await signUp(app)
    for (const locale of [...INVALID, 1, ['de']]) {
      errorsAt(t, await call(app, 'PUT', '/account', { locale }, bearer(token)), 400, ['locale'])
      errorsAt(t, await call(app, 'PUT', `/admin/users/${id}`, { locale }, asAdmin), 400, ['locale'])
      const email = freshEmail()
      errorsAt(t, await call(app, 'POST', '/admin/users', { email, locale }, asAdmin), 400, ['locale'])
      errorsAt(t, await signUpWith('de', { locale }), 400, ['locale'])
    }
    const response = await call(app, 'PUT', '/account', { locale: 'english' }, bearer(token))
    t.match(response.json(), { errors: { locale: ['must be a language tag (BCP 47), such as de or en-GB'] } })
    const lines = [{ email: freshEmail(), locale: 'english' }]
    t.match(await importAll(app, lines), [{ status: 'failed', errors: { locale: [/language tag/] } }, {}])
  })

  t.test('administrators write it; an export can be imported', async t => {
    const [email, imported] = [freshEmail(), freshEmail()]
    const created = (await call(app, 'POST', '/admin/users', { email, locale: 'de-at' }, asAdmin)).json()
    t.equal(created.locale, 'de-AT')
    const changed = await call(app, 'PUT', `/admin/users/${created.id}`, { locale: 'it' }, asAdmin)
    t.equal(changed.json().locale, 'it')
    const { id: _, ...user } = (await exportAll(app)).find(({ id }) => id === created.id) ?? created
    t.equal(user.locale, 'it')
    await importAll(app, [{ ...user, email: imported }])
    t.match(
      (await exportAll(app)).find(user => user.email === imported),
      { locale: 'it' },
    )
  })

  t.test('mails are in German for locales in German, in English for all others', async t => {
    const [german, french] = [freshEmail(), freshEmail()]
    await signUpWith('de-CH', { email: german })
    await signUpWith('fr', { email: french })
    const { text, html } = await mailWith(app, german, ACCOUNT_MAILS.verification.de.subject)
    t.match(text, /^Mit dieser Adresse wurde ein Konto bei/)
    t.match(text, 'Der Link gilt 24 Stunden.')
    t.match(text, 'Antworten werden nicht gelesen.')
    t.match(html, '<html lang="de">')
    const english = await mailWith(app, french, ACCOUNT_MAILS.verification.en.subject)
    t.match(english.text, /^An account at /)
    t.match(english.html, '<html lang="en-GB">')
    await forgot(app, german)
    t.match((await mailWith(app, german, ACCOUNT_MAILS.passwordReset.de.subject)).text, 'eine Stunde lang')
  })

  t.test('a change applies to the next mail, also to those to two addresses', async t => {
    const { id, email, token } = await signUp(app)
    await call(app, 'PUT', '/account', { locale: 'de' }, bearer(token))
    const next = freshEmail()
    await call(app, 'PUT', `/admin/users/${id}`, { email: next }, asAdmin)
    t.match((await mailWith(app, email, ACCOUNT_MAILS.emailChanged.de.subject)).text, next)
    t.ok(await mailWith(app, next, ACCOUNT_MAILS.emailAssigned.de.subject))
  })

  t.test('a sign-up that waits for its confirmation keeps it', async t => {
    const app = await build(t, { hasher: quickHashing, env: { REQUIRE_EMAIL_VERIFICATION: 'true' } })
    const email = freshEmail()
    const signUp = { email, firstName: 'Änne', lastName: 'Lee' }
    t.equal((await signUpWith('de', signUp, app)).statusCode, 202)
    const mail = await mailWith(app, email, ACCOUNT_MAILS.signUp.de.subject)
    t.match((await verify(app, tokenIn(mail))).json().user, { ...signUp, locale: 'de' })
    await signUpWith('de', { email }, app)
    t.ok(await mailWith(app, email, ACCOUNT_MAILS.accountExists.de.subject))
  })

  t.test('pages are in the language of the user who is signed in, else of the browser', async t => {
    const { token } = await signUp(app, { locale: 'de-DE' })
    const languageOf = async (accepted: string, cookie = '') => {
      const headers = { 'accept-language': accepted, cookie }
      const { body } = await app.inject({ url: '/security', headers })
      return /<html lang="(\w+)"/.exec(body)?.[1]
    }
    const cookie = `ACCESS_TOKEN=${token}`
    t.equal(await languageOf('en', cookie), 'de')
    await call(app, 'PUT', '/account', { locale: 'fr' }, bearer(token))
    t.equal(await languageOf('de', cookie), 'de', 'there are no pages in French')
    t.equal(await languageOf('en', cookie), 'en')
    await call(app, 'PUT', '/account', { locale: 'en-US' }, bearer(token))
    t.equal(await languageOf('de', cookie), 'en')
  })
})
