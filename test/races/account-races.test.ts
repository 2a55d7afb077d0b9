/** Two concurrent changes of one account (docs/design.md, "Account life cycle"), also on two instances of one database. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { PasswordHasher } from '#core/passwords/hasher'
import { accountOf, call, changeEmail, forgot, remove, reset, verify } from '../support/account-routes.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  freshEmail,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
  updateUser,
} from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { mailbox } from '../support/mailbox.ts'
import { race, rounds } from '../support/races.ts'

/** The state after the same password was rehashed. */
const ANEW = ' anew'

const hasher: PasswordHasher = {
  ...quickHashing,
  verify: (password, encoded) => quickHashing.verify(password, encoded?.replace(ANEW, '') ?? null),
}

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { hasher, env: { DATABASE_URL } }
  const app = await build(t, options)
  const second = await build(t, options)
  const mails = mailbox(app)
  /** In half of the rounds the rival runs on another instance. */
  const rival = (round: number): FastifyInstance => (round % 4 < 2 ? app : second)

  const listed = async (email: string) =>
    (await call(app, 'GET', `/admin/users?email=${encodeURIComponent(email)}`, undefined, asAdmin)).json()
      .results

  const tally = (responses: readonly LightMyRequestResponse[]): string =>
    responses.map(({ statusCode }) => statusCode).join(' ')

  t.test('of two resets with one token one succeeds, and only its session is valid', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    await Promise.all(users.map(({ email }) => forgot(app, email)))
    const errors: string[] = []
    const wins = [0, 0]
    for (const [round, user] of users.entries()) {
      const token = await mails.token(user.email, 'passwordReset')
      const passwords = [`first pass phrase ${round}`, `second pass phrase ${round}`]
      const apps = [app, rival(round)]
      const start = (index: number) => () => reset(apps[index] ?? app, token, passwords[index])
      const responses = await race(round, start(0), start(1))
      const winner = responses.findIndex(({ statusCode }) => statusCode === 200)
      const loser = responses[1 - winner]
      if (loser === undefined || winner === -1 || loser.statusCode !== 400) {
        errors.push(tally(responses))
        continue
      }
      wins[winner] = (wins[winner] ?? 0) + 1
      if (Object.keys(errorsOf(t, loser, 400)).join() !== 'token') errors.push(loser.body)
      const at = apps[winner] ?? app
      const { accessToken } = responses[winner]?.json() ?? {}
      const sessions = (await call(at, 'GET', '/account/sessions', undefined, bearer(accessToken))).json()
      if (sessions.results?.length !== 1) errors.push(`${sessions.results?.length} sessions`)
      if ((await accountStatus(at, user.token)) !== 401) errors.push('the session before it')
      const statuses = []
      for (const password of [passwords[winner], passwords[1 - winner], PASSWORD])
        statuses.push((await signIn(app, user.email, password)).statusCode)
      if (statuses.join() !== '200,401,401') errors.push(`passwords ${statuses}`)
    }
    t.strictSame(errors, [])
    t.comment(`wins: ${wins}`)
  })

  t.test('deletion concurrent with a change is never a 5xx, and the account is gone', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    const errors: string[] = []
    const seen = new Map<string, number>()
    for (const [round, user] of users.entries()) {
      const change = () =>
        call(rival(round), 'PUT', '/account', { firstName: `Ann ${round}` }, bearer(user.token))
      const responses = await race(round, () => remove(app, user.token, { password: PASSWORD }), change)
      seen.set(tally(responses), (seen.get(tally(responses)) ?? 0) + 1)
      const [{ statusCode: removed }, { statusCode: changed }] = responses
      if (removed !== 204 || ![200, 401, 404].includes(changed)) errors.push(tally(responses))
      if ((await accountStatus(app, user.token)) !== 401) errors.push('a session')
      if ((await listed(user.email)).length !== 0) errors.push('a user')
      if ((await signIn(second, user.email)).statusCode !== 401) errors.push('a sign-in')
    }
    t.strictSame(errors, [])
    t.comment(Object.fromEntries(seen))
  })

  t.test('of an e-mail change and a sign-up with the same e-mail exactly one succeeds', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    const wanted = rounds.map(() => freshEmail('wanted'))
    await Promise.all(
      users.map(({ token }, round) => changeEmail(app, token, { email: wanted[round], password: PASSWORD })),
    )
    const errors: string[] = []
    const seen = new Map<string, number>()
    for (const [round, user] of users.entries()) {
      const email = wanted[round] ?? ''
      const token = await mails.token(email, 'emailChange')
      const payload = { email, password: PASSWORD }
      const responses = await race(
        round,
        () => verify(app, token),
        () => call(rival(round), 'POST', '/account/sign-up', payload),
      )
      seen.set(tally(responses), (seen.get(tally(responses)) ?? 0) + 1)
      const [confirmed, signedUp] = responses
      if (!['200 409', '409 201'].includes(tally(responses))) {
        errors.push(tally(responses))
        continue
      }
      const owner = confirmed.statusCode === 200 ? user.id : signedUp.json().user.id
      const users = await listed(email)
      if (users.length !== 1 || users[0].id !== owner) errors.push(`${users.length} have it`)
      const own = (await accountOf(app, user.token)).email
      if (confirmed.statusCode === 409 && own !== user.email) errors.push(`the loser has ${own}`)
      const loser = confirmed.statusCode === 200 ? signedUp : confirmed
      if (Object.keys(errorsOf(t, loser, 409)).join() !== 'email') errors.push(loser.body)
    }
    t.strictSame(errors, [])
    t.comment(Object.fromEntries(seen))
  })

  t.test("verification concurrent with an admin's e-mail change never verifies the wrong e-mail", async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    const errors: string[] = []
    const seen = new Map<string, number>()
    for (const [round, user] of users.entries()) {
      const token = await mails.token(user.email, 'verification')
      const email = freshEmail('other')
      const responses = await race(
        round,
        () => verify(app, token),
        () => updateUser(rival(round), user.id, { email }),
      )
      seen.set(tally(responses), (seen.get(tally(responses)) ?? 0) + 1)
      if (!['200 200', '400 200'].includes(tally(responses))) errors.push(tally(responses))
      const [{ emailVerified, id }] = await listed(email)
      if (id !== user.id || emailVerified)
        errors.push(`${tally(responses)}: the other address counts as verified`)
    }
    t.strictSame(errors, [])
    t.comment(Object.fromEntries(seen))
  })

  /** Requests that need the password, with their status while the session is valid. */
  const CONFIRMED: Record<string, [number, (user: SignedUp) => Promise<LightMyRequestResponse>]> = {
    'PUT /account/password': [
      200,
      ({ token }) =>
        call(
          app,
          'PUT',
          '/account/password',
          { currentPassword: PASSWORD, newPassword: 'another long pass phrase 8' },
          bearer(token),
        ),
    ],
    'PUT /account/email': [
      202,
      ({ token }) => changeEmail(app, token, { email: freshEmail('wanted'), password: PASSWORD }),
    ],
    'DELETE /account': [204, ({ token }) => remove(app, token, { password: PASSWORD })],
  }

  for (const [name, [status, run]] of Object.entries(CONFIRMED)) {
    t.test(`${name} concurrent with an admin's e-mail change, which ends no session`, async t => {
      const errors: string[] = []
      for (const round of rounds) {
        const user = await signUp(app)
        const responses = await race(
          round,
          () => run(user),
          () => updateUser(rival(round), user.id, { email: freshEmail('other') }),
        )
        if (responses[0].statusCode !== status) errors.push(`${tally(responses)} ${responses[0].body}`)
      }
      t.strictSame(errors, [])
    })

    t.test(`${name} concurrent with a sign-in that rehashes the same password`, async t => {
      const errors: string[] = []
      const { users, accounts } = app.services.storage
      for (const round of rounds) {
        const user = await signUp(app)
        const hash = (await users.findByEmail(user.email))?.passwordHash ?? ''
        const rehash = async () => {
          await accounts.rehash(user.id, hash, `${hash}${ANEW}`)
          return signIn(rival(round), freshEmail('nobody'))
        }
        const [response] = await race(round, () => run(user), rehash)
        if (response.statusCode !== status) errors.push(`${response.statusCode} ${response.body}`)
      }
      t.strictSame(errors, [])
    })
  }

  t.test("an import concurrent with deletion of the e-mail's user: exists or created", async t => {
    const seen = new Map<string, number>()
    for (const round of rounds) {
      const user = await signUp(app)
      const payload = `${JSON.stringify({ email: user.email })}\n`
      const headers = { ...asAdmin, 'content-type': 'application/x-ndjson' }
      const [imported] = await race(
        round,
        () => rival(round).inject({ method: 'POST', url: '/admin/users/import', headers, payload }),
        () => call(app, 'DELETE', `/admin/users/${user.id}`, undefined, asAdmin),
      )
      const { status } = JSON.parse(imported.body.split('\n')[0] ?? '')
      seen.set(status, (seen.get(status) ?? 0) + 1)
    }
    t.strictSame(
      [...seen.keys()].filter(status => !['created', 'exists'].includes(status)),
      [],
    )
    t.comment(Object.fromEntries(seen))
  })
})
