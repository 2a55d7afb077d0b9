/** Changes during a request, and the cost of concurrent requests. */
import { hashSync } from '@node-rs/argon2'
import t from 'tap'
import { PooledPasswordHasher } from '#core/passwords/hasher'
import { Users } from '#core/users/users'
import { asAdmin, bearer, freshEmail, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { parseResponse } from '../support/process.ts'
import { sendSlowly } from '../support/slow-request.ts'

await onEnginesOfRun(t, async (t, { build }) => {
  const app = await build(t, { realHashing: true })
  await app.listen({ host: '127.0.0.1', port: 0 })

  /** Sends a PUT whose body ends only after `meanwhile`. */
  const putSlowly = (token: string, meanwhile: () => Promise<unknown>): Promise<string> =>
    sendSlowly(
      app,
      { method: 'PUT', url: '/account', headers: bearer(token), body: { firstName: 'Late' } },
      meanwhile,
    )

  t.test('a body that arrives after its user was disabled changes nothing (§5.1.4)', async t => {
    const { id, token } = await signUp(app, { firstName: 'Early' })
    const changes = t.capture(Users.prototype, 'updateOwn', Users.prototype.updateOwn)
    const response = await putSlowly(token, () => updateUser(app, id, { disabled: true }))
    t.equal(parseResponse(response).status, 401)
    t.equal(changes().length, 0, 'the gate rejects: the handler is not reached')
    const { results } = (await app.inject({ url: '/admin/users?search=early', headers: asAdmin })).json()
    t.match(results, [{ id, firstName: 'Early', disabled: true }])
  })

  t.test('a body that arrives after another change of its user is accepted (§5.1.2)', async t => {
    const { id, token } = await signUp(app)
    const response = await putSlowly(token, () => updateUser(app, id, { lastName: 'Changed' }))
    t.equal(parseResponse(response).status, 200)
    t.match(JSON.parse(parseResponse(response).body), { firstName: 'Late', lastName: 'Changed' })
  })

  t.test('concurrent sign-ups with one e-mail cost one hash', async t => {
    const hashes = t.capture(PooledPasswordHasher.prototype, 'hash', PooledPasswordHasher.prototype.hash)
    const payload = { email: freshEmail(), password: PASSWORD }
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => app.inject({ method: 'POST', url: '/account/sign-up', payload })),
    )
    t.equal(responses.filter(({ statusCode }) => statusCode === 201).length, 1)
    t.equal(hashes().length, 1)
  })

  t.test('a weak hash is replaced at sign-in', async t => {
    const { users, accounts } = app.services.storage
    const { id, email } = await signUp(app)
    const stored = async (): Promise<string> => (await users.findByEmail(email))?.passwordHash ?? ''
    const weak = hashSync(PASSWORD, { memoryCost: 8_192, timeCost: 1, parallelism: 1 })
    await accounts.rehash(id, await stored(), weak)
    t.equal((await signIn(app, email)).statusCode, 200)
    t.match(await stored(), /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    t.equal((await signIn(app, email)).statusCode, 200)
  })

  t.test('a password of any length and content matches or does not, without an error', async t => {
    const { email } = await signUp(app)
    const marks = '\u0345\u0301\u0316\u0334'.repeat(2_000)
    for (const password of [marks, 'x'.repeat(16_000), `${PASSWORD}${' '.repeat(200)}`]) {
      t.equal((await signIn(app, email, password)).statusCode, 401)
    }
  })

  t.test('only administrators see who is disabled', async t => {
    const { token } = await signUp(app)
    const { id } = await signUp(app, { firstName: 'Vanishing' })
    const find = async (url: string, headers: Record<string, string>): Promise<number> =>
      (await app.inject({ url, headers })).json().results.length
    t.equal(await find('/users?search=vanish', bearer(token)), 1)
    await updateUser(app, id, { disabled: true })
    t.equal(await find('/users?search=vanish', bearer(token)), 0)
    t.equal(await find('/admin/users?search=vanish', asAdmin), 1)
  })

  t.test('a new e-mail is unverified, unless the administrator verifies it', async t => {
    const { id } = await signUp(app)
    const verified = async (change: Record<string, unknown>) =>
      (await updateUser(app, id, change)).json().emailVerified
    t.equal(await verified({ emailVerified: true }), true)
    t.equal(await verified({ lastName: 'Same' }), true)
    t.equal(await verified({ email: freshEmail() }), false)
    t.equal(await verified({ email: freshEmail(), emailVerified: true }), true)
  })

  t.test('unknown paths below /docs are a 404 with the error body (§7.1)', async t => {
    const response = await app.inject('/docs/static/nothing.js')
    t.equal(response.statusCode, 404)
    t.same(response.json(), { errors: { global: ['There is no such route'] } })
  })
})
