/** Two things at once on one account (DESIGN §9, "Must be shown"): 100 rounds each, also on two instances of one database. */
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { PasswordHasher } from '../../src/passwords/hasher.ts'
import { accountOf, call, changeEmail, forgot, remove, reset, verify } from '../support/account-life.ts'
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

const ROUNDS = 100
const rounds = Array.from({ length: ROUNDS }, (_, round) => round)

/** What stands behind a hash that was made anew of the same password. */
const ANEW = ' anew'

const hasher: PasswordHasher = {
  ...quickHashing,
  verify: (password, encoded) => quickHashing.verify(password, encoded?.replace(ANEW, '') ?? null),
}

type Start = () => Promise<LightMyRequestResponse>

/** Both at once, now one first, now the other, and the second a few turns of the event loop later. */
const race = async (round: number, one: Start, two: Start) => {
  const later = async (start: Start) => {
    for (let turns = (round >> 2) % 8; turns > 0; turns -= 1) await setImmediate()
    return start()
  }
  return Promise.all(round % 2 === 0 ? [one(), later(two)] : [later(one), two()])
}

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { hasher, env: { DATABASE_URL } }
  const app = await build(t, options)
  const second = await build(t, options)
  const mails = mailbox(app)
  /** In half of the rounds the rival is another instance. */
  const rival = (round: number): FastifyInstance => (round % 4 < 2 ? app : second)

  const listed = async (email: string) =>
    (await call(app, 'GET', `/admin/users?email=${encodeURIComponent(email)}`, undefined, asAdmin)).json()
      .results

  const tally = (answers: readonly LightMyRequestResponse[]): string =>
    answers.map(({ statusCode }) => statusCode).join(' ')

  t.test('two resets with one token: one of them, and its session alone lives', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    await Promise.all(users.map(({ email }) => forgot(app, email)))
    const faults: string[] = []
    const wins = [0, 0]
    for (const [round, user] of users.entries()) {
      const token = await mails.token(user.email, 'passwordReset')
      const passwords = [`first pass phrase ${round}`, `second pass phrase ${round}`]
      const apps = [app, rival(round)]
      const start = (index: number) => () => reset(apps[index] ?? app, token, passwords[index])
      const answers = await race(round, start(0), start(1))
      const winner = answers.findIndex(({ statusCode }) => statusCode === 200)
      const loser = answers[1 - winner]
      if (loser === undefined || winner === -1 || loser.statusCode !== 400) {
        faults.push(tally(answers))
        continue
      }
      wins[winner] = (wins[winner] ?? 0) + 1
      if (Object.keys(errorsOf(t, loser, 400)).join() !== 'token') faults.push(loser.body)
      const at = apps[winner] ?? app
      const { accessToken } = answers[winner]?.json() ?? {}
      const sessions = (await call(at, 'GET', '/account/sessions', undefined, bearer(accessToken))).json()
      if (sessions.results?.length !== 1) faults.push(`${sessions.results?.length} sessions`)
      if ((await accountStatus(at, user.token)) !== 401) faults.push('the session before it')
      const statuses = []
      for (const password of [passwords[winner], passwords[1 - winner], PASSWORD])
        statuses.push((await signIn(app, user.email, password)).statusCode)
      if (statuses.join() !== '200,401,401') faults.push(`passwords ${statuses}`)
    }
    t.strictSame(faults, [])
    t.comment(`wins: ${wins}`)
  })

  t.test('a deletion against a change: never a 5xx, and the account is gone', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    const faults: string[] = []
    const seen = new Map<string, number>()
    for (const [round, user] of users.entries()) {
      const change = () =>
        call(rival(round), 'PUT', '/account', { firstName: `Ann ${round}` }, bearer(user.token))
      const answers = await race(round, () => remove(app, user.token, { password: PASSWORD }), change)
      seen.set(tally(answers), (seen.get(tally(answers)) ?? 0) + 1)
      const [{ statusCode: removed }, { statusCode: changed }] = answers
      if (removed !== 204 || ![200, 401, 404].includes(changed)) faults.push(tally(answers))
      if ((await accountStatus(app, user.token)) !== 401) faults.push('a session')
      if ((await listed(user.email)).length !== 0) faults.push('a user')
      if ((await signIn(second, user.email)).statusCode !== 401) faults.push('a sign-in')
    }
    t.strictSame(faults, [])
    t.comment(Object.fromEntries(seen))
  })

  t.test('a change of the e-mail against a sign-up with it: exactly one has it', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    const wanted = rounds.map(() => freshEmail('wanted'))
    await Promise.all(
      users.map(({ token }, round) => changeEmail(app, token, { email: wanted[round], password: PASSWORD })),
    )
    const faults: string[] = []
    const seen = new Map<string, number>()
    for (const [round, user] of users.entries()) {
      const email = wanted[round] ?? ''
      const token = await mails.token(email, 'newEmail')
      const payload = { email, password: PASSWORD }
      const answers = await race(
        round,
        () => verify(app, token),
        () => call(rival(round), 'POST', '/account/sign-up', payload),
      )
      seen.set(tally(answers), (seen.get(tally(answers)) ?? 0) + 1)
      const [confirmed, signedUp] = answers
      if (!['200 409', '409 201'].includes(tally(answers))) {
        faults.push(tally(answers))
        continue
      }
      const owner = confirmed.statusCode === 200 ? user.id : signedUp.json().user.id
      const users = await listed(email)
      if (users.length !== 1 || users[0].id !== owner) faults.push(`${users.length} have it`)
      const own = (await accountOf(app, user.token)).email
      if (confirmed.statusCode === 409 && own !== user.email) faults.push(`the loser has ${own}`)
      const loser = confirmed.statusCode === 200 ? signedUp : confirmed
      if (Object.keys(errorsOf(t, loser, 409)).join() !== 'email') faults.push(loser.body)
    }
    t.strictSame(faults, [])
    t.comment(Object.fromEntries(seen))
  })

  t.test('a verification against another e-mail by an admin: none is verified but by its own', async t => {
    const users = await Promise.all(rounds.map(() => signUp(app)))
    const faults: string[] = []
    const seen = new Map<string, number>()
    for (const [round, user] of users.entries()) {
      const token = await mails.token(user.email, 'verification')
      const email = freshEmail('other')
      const answers = await race(
        round,
        () => verify(app, token),
        () => updateUser(rival(round), user.id, { email }),
      )
      seen.set(tally(answers), (seen.get(tally(answers)) ?? 0) + 1)
      if (!['200 200', '400 200'].includes(tally(answers))) faults.push(tally(answers))
      const [{ emailVerified, id }] = await listed(email)
      if (id !== user.id || emailVerified)
        faults.push(`${tally(answers)}: the other address counts as verified`)
    }
    t.strictSame(faults, [])
    t.comment(Object.fromEntries(seen))
  })

  /** What needs the password, with the status that it has while nothing ends the session. */
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
    t.test(`${name} against another e-mail by an admin, which ends no session`, async t => {
      const faults: string[] = []
      for (const round of rounds) {
        const user = await signUp(app)
        const answers = await race(
          round,
          () => run(user),
          () => updateUser(rival(round), user.id, { email: freshEmail('other') }),
        )
        if (answers[0].statusCode !== status) faults.push(`${tally(answers)} ${answers[0].body}`)
      }
      t.strictSame(faults, [])
    })

    t.test(`${name} against a sign-in that hashes the same password anew`, async t => {
      const faults: string[] = []
      const { users, accounts } = app.services.storage
      for (const round of rounds) {
        const user = await signUp(app)
        const hash = (await users.findByEmail(user.email))?.passwordHash ?? ''
        const rehash = async () => {
          await accounts.rehash(user.id, hash, `${hash}${ANEW}`)
          return signIn(rival(round), freshEmail('nobody'))
        }
        const [answer] = await race(round, () => run(user), rehash)
        if (answer.statusCode !== status) faults.push(`${answer.statusCode} ${answer.body}`)
      }
      t.strictSame(faults, [])
    })
  }

  t.test('an import against the deletion of who has the e-mail: there, or created', async t => {
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
