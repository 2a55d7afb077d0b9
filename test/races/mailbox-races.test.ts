/**
 * Who proves a mailbox, at the same time as somebody else does something to the account (docs/design.md, "Account life cycle"), also on two
 * instances of one database.
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { call, changeEmail, forgot, reset, verify } from '../support/account-routes.ts'
import { allEvents, createUser, deleteUser, factorsOf, postUser } from '../support/admin-routes.ts'
import { createKey, listKeys, postKey } from '../support/api-keys.ts'
import { beginTotp, confirmTotp } from '../support/authenticator-apps.ts'
import {
  accountStatus,
  asAdmin,
  bearer,
  freshEmail,
  PASSWORD,
  type SignedUp,
  signIn,
  signUp,
} from '../support/build.ts'
import { INVALIDATION_LIMIT } from '../support/cli.ts'
import { codesOf, EMAIL_CODES, signInByCode } from '../support/email-codes.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { errorsOf } from '../support/error-response.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import {
  creationOptions,
  ENV,
  listPasskeys,
  postPasskey,
  signInWith as signInWithPasskey,
} from '../support/passkeys.ts'
import { race, rounds } from '../support/races.ts'
import { SoftwareAuthenticator } from '../support/software-authenticator.ts'
import { until } from '../support/until.ts'

const NEW = 'another long pass phrase 8'
const CHANGED = 'a changed pass phrase 9'

const SIMULTANEOUS = 20

/** Concurrent rounds, each with its own user. */
const AT_ONCE = 4

const tally = (responses: readonly LightMyRequestResponse[]): string =>
  responses.map(({ statusCode }) => statusCode).join(' ')

const reject = (app: FastifyInstance, token: string) =>
  call(app, 'POST', '/account/verify-email/reject', { token })

const ask = (app: FastifyInstance, email: string, password = PASSWORD) =>
  call(app, 'POST', '/account/sign-up', { email, password })

/** A race of the stranger, who has prepared it, against the owner of the mailbox. */
interface Attempt {
  /** Whatever the stranger prepares. @returns what is sent at the same time as the owner signs in. */
  prepare(
    app: FastifyInstance,
    stranger: SignedUp,
  ): Promise<(at: FastifyInstance) => Promise<LightMyRequestResponse>>
  /** @returns whether the stranger has something left, by the response to what was sent. */
  hasLeft?(app: FastifyInstance, email: string, sent: LightMyRequestResponse): Promise<boolean>
}

const works = async (
  app: FastifyInstance,
  { accessToken, token }: { accessToken?: string; token?: string },
) => (await accountStatus(app, accessToken ?? token ?? '')) !== 401

const ATTEMPTS: Record<string, Attempt> = {
  'an API key': {
    prepare:
      async (_app, { token }) =>
      at =>
        postKey(at, token),
    hasLeft: async (app, _email, sent) => sent.statusCode === 201 && works(app, sent.json()),
  },
  'a passkey': {
    async prepare(app, { token }) {
      const authenticator = new SoftwareAuthenticator()
      const credential = authenticator.create((await creationOptions(app, token)).json())
      return async at => Object.assign(await postPasskey(at, token, { credential }), { authenticator })
    },
    hasLeft: async (app, _email, sent) =>
      'authenticator' in sent &&
      (await signInWithPasskey(app, sent.authenticator as SoftwareAuthenticator)).statusCode !== 401,
  },
  'an authenticator app': {
    async prepare(app, { token }) {
      const added = await beginTotp(app, token)
      return at => confirmTotp(at, token, added.code())
    },
  },
  'a session': {
    prepare:
      async (_app, { email }) =>
      at =>
        signIn(at, email),
    hasLeft: async (app, _email, sent) => sent.statusCode === 200 && works(app, sent.json()),
  },
  'another password': {
    prepare:
      async (_app, { token }) =>
      at =>
        call(
          at,
          'PUT',
          '/account/password',
          { currentPassword: PASSWORD, newPassword: CHANGED },
          bearer(token),
        ),
    hasLeft: async (app, email, sent) =>
      (sent.statusCode === 200 && (await works(app, sent.json()))) ||
      (await signIn(app, email, CHANGED)).statusCode !== 401,
  },
  'a change of the e-mail': {
    prepare:
      async (_app, { token }) =>
      at =>
        changeEmail(at, token, { email: freshEmail('elsewhere'), password: PASSWORD }),
  },
}

await onEnginesOfRun(t, async (t, { build, newDatabase }) => {
  const env = { ...ENV, ...EMAIL_CODES, DATABASE_URL: await newDatabase(t) }
  const options = { hasher: quickHashing, env }
  const app = await build(t, options)
  const second = await build(t, options)
  const required = { hasher: quickHashing, env: { ...env, REQUIRE_EMAIL_VERIFICATION: 'true' } }
  const [pendingApp, pendingSecond] = [await build(t, required), await build(t, required)]
  const codes = codesOf(app)
  const { mails } = codes
  const pendingMails = codesOf(pendingApp).mails
  /** In half of the rounds the rival runs on another instance. */
  const rival = (round: number): FastifyInstance => (round % 4 < 2 ? app : second)
  const pendingRival = (round: number): FastifyInstance => (round % 4 < 2 ? pendingApp : pendingSecond)

  const listed = async (email: string) =>
    (await call(app, 'GET', `/admin/users?email=${encodeURIComponent(email)}`, undefined, asAdmin)).json()
      .results

  const eventsOf = async (userId: string, type: string): Promise<number> =>
    (await allEvents(app, { userId, type })).length

  /** Runs every round, and collects what was wrong and how often each outcome came. */
  const play = async (run: (round: number, errors: string[]) => Promise<string>) => {
    const errors: string[] = []
    const seen: Record<string, number> = {}
    for (let start = 0; start < rounds.length; start += AT_ONCE)
      await Promise.all(
        rounds.slice(start, start + AT_ONCE).map(async round => {
          const outcome = await run(round, errors)
          seen[outcome] = (seen[outcome] ?? 0) + 1
        }),
      )
    return { errors, seen }
  }

  const pendingToken = async (email: string, password = PASSWORD, count = 1): Promise<string> => {
    await ask(pendingApp, email, password)
    return pendingMails.token(email, 'signUp', count)
  }

  t.test('of twenty confirmations of a sign-up one opens the account', async t => {
    const email = freshEmail()
    const token = await pendingToken(email)
    const responses = await Promise.all(
      Array.from({ length: SIMULTANEOUS }, (_, index) =>
        verify(index % 2 ? pendingApp : pendingSecond, token),
      ),
    )
    const opened = responses.filter(({ statusCode }) => statusCode === 200)
    t.equal(opened.length, 1, tally(responses))
    for (const response of responses.filter(each => !opened.includes(each)))
      t.same(Object.keys(errorsOf(t, response, 400)), ['token'])
    const [user, ...others] = await listed(email)
    t.same(others, [])
    t.equal(await eventsOf(user.id, 'user.signed-up'), 1)
    t.equal(await accountStatus(app, opened[0]?.json().accessToken), 200)
  })

  t.test('twenty confirmations of one link, by session and by password, have one effect', async t => {
    const user = await signUp(app)
    const wanted = freshEmail('wanted')
    await changeEmail(app, user.token, { email: wanted, password: PASSWORD })
    const links = [
      ['email.verified', user.email, await mails.token(user.email, 'verification')],
      ['email.changed', wanted, await mails.token(wanted, 'emailChange')],
    ] as const
    for (const [type, email, token] of links) {
      const version = (await call(app, 'GET', '/account', undefined, bearer(user.token))).headers.etag
      const responses = await Promise.all(
        Array.from({ length: SIMULTANEOUS }, (_, index) => {
          const at = index % 2 ? app : second
          if (index % 4 < 2) return verify(at, token)
          return call(at, 'POST', '/account/verify-email', { token }, bearer(user.token))
        }),
      )
      t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 1, tally(responses))
      for (const response of responses.filter(({ statusCode }) => statusCode !== 200))
        errorsOf(t, response, 400)
      t.equal(await eventsOf(user.id, type), 1)
      // The link may have worked on the other instance.
      const account = await until(
        () => call(app, 'GET', '/account', undefined, bearer(user.token)),
        ({ headers }) => headers.etag !== version,
        INVALIDATION_LIMIT,
      )
      t.match(account.json(), { email, emailVerified: true })
      t.not(account.headers.etag, version)
    }
  })

  t.test('of two sign-ups with one address that are confirmed at once one opens the account', async t => {
    const { errors, seen } = await play(async (round, errors) => {
      const email = freshEmail()
      const tokens = [await pendingToken(email), await pendingToken(email, NEW, 2)] as const
      const responses = await race(
        round,
        () => verify(pendingApp, tokens[0]),
        () => verify(pendingRival(round), tokens[1], NEW),
      )
      const winner = responses.findIndex(({ statusCode }) => statusCode === 200)
      if (!['200 400', '400 200', '200 409', '409 200'].includes(tally(responses)))
        errors.push(tally(responses))
      if ((await listed(email)).length !== 1) errors.push('not one account')
      const statuses = []
      for (const password of [PASSWORD, NEW])
        statuses.push((await signIn(app, email, password)).statusCode === 200)
      if (statuses[winner] !== true || statuses[1 - winner] !== false) errors.push(`passwords ${statuses}`)
      for (const [index, password] of [PASSWORD, NEW].entries())
        if ((await verify(pendingApp, tokens[index], password)).statusCode !== 400)
          errors.push('a link works again')
      return tally(responses)
    })
    t.strictSame(errors, [])
    t.comment(seen)
  })

  t.test('a sign-up is confirmed or rejected, never both, and rejecting it ends no other', async t => {
    const { errors, seen } = await play(async (round, errors) => {
      const email = freshEmail()
      const [token, other] = [await pendingToken(email), await pendingToken(email, NEW, 2)]
      const responses = await race(
        round,
        () => verify(pendingApp, token),
        () => reject(pendingRival(round), token),
      )
      if (!['200 400', '400 200'].includes(tally(responses))) errors.push(tally(responses))
      const isOpen = responses[0].statusCode === 200
      if ((await listed(email)).length !== (isOpen ? 1 : 0)) errors.push(`${tally(responses)}: accounts`)
      const late = await verify(pendingApp, other, NEW)
      if (late.statusCode !== (isOpen ? 400 : 200))
        errors.push(`${tally(responses)}: the other ${late.statusCode}`)
      return tally(responses)
    })
    t.strictSame(errors, [])
    t.comment(seen)
  })

  t.test('of a confirmed sign-up and an account by an administrator one has the address', async t => {
    const { errors, seen } = await play(async (round, errors) => {
      const email = freshEmail()
      const token = await pendingToken(email)
      const responses = await race(
        round,
        () => verify(pendingApp, token),
        () => postUser(pendingRival(round), { email, emailVerified: true }),
      )
      if (!['200 409', '409 201'].includes(tally(responses))) errors.push(tally(responses))
      const users = await listed(email)
      const isOpen = responses[0].statusCode === 200
      if (users.length !== 1) errors.push('not one account')
      if ((await signIn(app, email)).statusCode !== (isOpen ? 200 : 401)) errors.push('a password')
      return tally(responses)
    })
    t.strictSame(errors, [])
    t.comment(seen)
  })

  t.test('an account is confirmed or rejected, never both', async t => {
    const { errors, seen } = await play(async (round, errors) => {
      const user = await signUp(app)
      const token = await mails.token(user.email, 'verification')
      const bySession = () => call(app, 'POST', '/account/verify-email', { token }, bearer(user.token))
      const responses = await race(
        round,
        () => (round % 8 < 4 ? verify(app, token) : bySession()),
        () => reject(rival(round), token),
      )
      // The password or the session is read before or after the account is removed.
      if (!/^(200 400|40[013] 200)$/.test(tally(responses))) errors.push(tally(responses))
      const isKept = responses[0].statusCode === 200
      const users = await listed(user.email)
      if (users.length !== (isKept ? 1 : 0)) errors.push(`${tally(responses)}: accounts`)
      // Other instances follow within a second.
      if ((await works(rival(round), user)) !== isKept) errors.push(`${tally(responses)}: the session`)
      if (isKept && !users[0].emailVerified) errors.push('not confirmed')
      return tally(responses)
    })
    t.strictSame(errors, [])
    t.comment(seen)
  })

  t.test('a change of the e-mail is confirmed or rejected, never both', async t => {
    const { errors, seen } = await play(async (round, errors) => {
      const user = await signUp(app)
      const wanted = freshEmail('wanted')
      await changeEmail(app, user.token, { email: wanted, password: PASSWORD })
      const token = await mails.token(wanted, 'emailChange')
      const responses = await race(
        round,
        () => verify(app, token),
        () => reject(rival(round), token),
      )
      if (!['200 400', '400 200'].includes(tally(responses))) errors.push(tally(responses))
      const hasChanged = responses[0].statusCode === 200
      if ((await listed(hasChanged ? wanted : user.email)).length !== 1) errors.push('the e-mail')
      if ((await eventsOf(user.id, 'email.changed')) !== (hasChanged ? 1 : 0)) errors.push('the change')
      if ((await eventsOf(user.id, 'email.change-rejected')) !== (hasChanged ? 0 : 1))
        errors.push('the rejection')
      return tally(responses)
    })
    t.strictSame(errors, [])
    t.comment(seen)
  })

  t.test('a confirmation concurrent with a removal by an administrator brings nothing back', async t => {
    const { errors, seen } = await play(async (round, errors) => {
      const user = await signUp(app)
      const token = await mails.token(user.email, 'verification')
      const responses = await race(
        round,
        () => verify(app, token),
        () => deleteUser(rival(round), user.id),
      )
      if (!/^(200|40[03]) 204$/.test(tally(responses))) errors.push(tally(responses))
      if ((await listed(user.email)).length !== 0) errors.push('the account is there')
      if (await works(rival(round), user)) errors.push('the session works')
      const [last] = await allEvents(app, { userId: user.id })
      if (last?.type !== 'user.deleted') errors.push(`${last?.type} is newer than the removal`)
      return tally(responses)
    })
    t.strictSame(errors, [])
    t.comment(seen)
  })

  /** The ways in by the mailbox alone, prepared for an address. */
  const WAYS_IN: Record<string, (email: string) => Promise<() => Promise<LightMyRequestResponse>>> = {
    'a mailed code': async email => {
      const code = await codes.request(email)
      return () => signInByCode(app, email, code)
    },
    'a reset': async email => {
      await forgot(app, email)
      const token = await mails.token(email, 'passwordReset')
      return () => reset(app, token, NEW)
    },
  }

  for (const [way, prepareEntry] of Object.entries(WAYS_IN)) {
    t.test(`L2, L3: either the account is confirmed, or ${way} empties it`, async t => {
      const { errors, seen } = await play(async (round, errors) => {
        const user = await signUp(app)
        const key = await createKey(app, user.token)
        const token = await mails.token(user.email, 'verification')
        const enter = await prepareEntry(user.email)
        const bySession = () =>
          call(rival(round), 'POST', '/account/verify-email', { token }, bearer(user.token))
        const [entered, confirmed] = await race(round, enter, () =>
          round % 8 < 4 ? verify(rival(round), token) : bySession(),
        )
        const outcome = tally([entered, confirmed])
        if (entered.statusCode !== 200) errors.push(outcome)
        if (![200, 400, 401, 403].includes(confirmed.statusCode)) errors.push(`${outcome} ${confirmed.body}`)
        const isConfirmed = confirmed.statusCode === 200
        if ((await works(app, key)) !== isConfirmed) errors.push(`${outcome}: the API key`)
        if ((await eventsOf(user.id, 'email.verified')) !== 1) errors.push(`${outcome}: events`)
        if ((await eventsOf(user.id, 'api-key.revoked')) !== (isConfirmed ? 0 : 1))
          errors.push(`${outcome}: removal`)
        const keepsPassword = isConfirmed && way === 'a mailed code'
        if (((await signIn(app, user.email)).statusCode === 200) !== keepsPassword)
          errors.push(`${outcome}: password`)
        if ((await works(app, user)) !== keepsPassword) errors.push(`${outcome}: session`)
        if (!(await works(app, entered.json()))) errors.push(`${outcome}: the owner is out`)
        return outcome
      })
      t.strictSame(errors, [])
      t.comment(seen)
    })

    t.test(`L2, L3: the owner rejects the account or enters it by ${way}, never both`, async t => {
      const { errors, seen } = await play(async (round, errors) => {
        const user = await signUp(app)
        const token = await mails.token(user.email, 'verification')
        const enter = await prepareEntry(user.email)
        const [entered, rejected] = await race(round, enter, () => reject(rival(round), token))
        const outcome = tally([entered, rejected])
        if (!/^(200 400|40[01] 200)$/.test(outcome)) errors.push(outcome)
        const isKept = entered.statusCode === 200
        if ((await listed(user.email)).length !== (isKept ? 1 : 0)) errors.push(`${outcome}: accounts`)
        if (isKept && !(await works(app, entered.json()))) errors.push(`${outcome}: the owner is out`)
        if (await works(isKept ? app : rival(round), user)) errors.push(`${outcome}: the stranger is in`)
        return outcome
      })
      t.strictSame(errors, [])
      t.comment(seen)
    })

    for (const [name, { prepare, hasLeft }] of Object.entries(ATTEMPTS))
      t.test(`L2, L3: ${name} of the stranger does not survive ${way}`, async t => {
        const { errors, seen } = await play(async (round, errors) => {
          const stranger = await signUp(app)
          const { email, id } = stranger
          const send = await prepare(app, stranger)
          const enter = await prepareEntry(email)
          const [entered, sent] = await race(round, enter, () => send(rival(round)))
          const outcome = tally([entered, sent])
          if (entered.statusCode >= 500 || sent.statusCode >= 500) errors.push(`${outcome} ${sent.body}`)
          // What ends the code or link before it is used leaves the account as it was.
          if (entered.statusCode !== 200) {
            if (name !== 'another password' || sent.statusCode !== 200)
              errors.push(`${outcome} ${entered.body}`)
            return outcome
          }
          const { accessToken } = entered.json()
          if (await hasLeft?.(app, email, sent)) errors.push(`${outcome}: it works`)
          if (await works(app, stranger)) errors.push(`${outcome}: the session works`)
          if ((await signIn(app, email)).statusCode !== 401) errors.push(`${outcome}: the password works`)
          if (!(await works(app, { accessToken }))) errors.push(`${outcome}: the owner is out`)
          const left = [
            ...(await listKeys(app, accessToken)),
            ...(await listPasskeys(app, accessToken)),
            ...(await factorsOf(app, id)),
          ]
          if (left.length > 0) errors.push(`${outcome}: ${JSON.stringify(left)}`)
          const sessions = await call(app, 'GET', '/account/sessions', undefined, bearer(accessToken))
          if (sessions.json().results.length !== 1) errors.push(`${outcome}: sessions`)
          return outcome
        })
        t.strictSame(errors, [])
        t.comment(seen)
      })
  }

  t.test('of twenty mailed sign-ins to an unconfirmed account one empties it', async t => {
    const user = await createUser(app, { password: PASSWORD })
    const code = await codes.request(user.email)
    const responses = await Promise.all(
      Array.from({ length: SIMULTANEOUS }, (_, index) =>
        signInByCode(index % 2 ? app : second, user.email, code),
      ),
    )
    t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 1, tally(responses))
    t.ok(responses.every(({ statusCode }) => [200, 401].includes(statusCode)))
    t.equal(await eventsOf(user.id, 'email.verified'), 1)
    t.equal(await eventsOf(user.id, 'password.removed'), 1)
  })
})
