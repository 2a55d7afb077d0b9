/**
 * Deletion or disabling concurrent with every other action on the account, also on two instances of one database. The status names the cause, and no event of a user is newer than the user's deletion.
 */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import { type EmailTokenPurpose, newEmailToken } from '#core/accounts/email-token'
import { anonymous, newEvent } from '#core/audit-log/event'
import { call, changeEmail, resend, reset, verify } from '../support/account-routes.ts'
import { allEvents } from '../support/admin-routes.ts'
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
import { quickHashing } from '../support/fake-hashing.ts'
import { race, rounds } from '../support/races.ts'

/** Concurrent rounds, each with its own user. */
const AT_ONCE = 5

type PendingResponse = Promise<LightMyRequestResponse>

interface Rival {
  /** Statuses that an action may have beside a deletion, and beside disabling. */
  readonly deletion: readonly number[]
  readonly disabling: readonly number[]
  /** The mail that the user gets before the race. */
  readonly token?: EmailTokenPurpose
  run(app: FastifyInstance, user: SignedUp, round: number, token: string): PendingResponse
}

const mine = ({ token }: SignedUp) => bearer(token)

const RIVALS: Record<string, Rival> = {
  'PUT /account/email': {
    deletion: [202, 401],
    disabling: [202, 401],
    run: (app, { token }) => changeEmail(app, token, { email: freshEmail('wanted'), password: PASSWORD }),
  },
  'POST /account/verify-email/resend': {
    deletion: [202, 401],
    disabling: [202, 401],
    run: (app, { token }) => resend(app, token),
  },
  'POST /admin/users/:id/impersonate': {
    deletion: [201, 404],
    disabling: [201, 403],
    run: (app, { id }) => call(app, 'POST', `/admin/users/${id}/impersonate`, undefined, asAdmin),
  },
  'POST /account/sign-in': {
    deletion: [200, 401],
    disabling: [200, 403],
    run: (app, { email }) => signIn(app, email),
  },
  'POST /account/sign-out': {
    deletion: [204, 401],
    disabling: [204, 401],
    run: (app, user) => call(app, 'POST', '/account/sign-out', undefined, mine(user)),
  },
  'DELETE /account/sessions': {
    deletion: [204, 401],
    disabling: [204, 401],
    run: (app, user) => call(app, 'DELETE', '/account/sessions', undefined, mine(user)),
  },
  'DELETE /account/sessions/:id': {
    deletion: [204, 401],
    disabling: [204, 401],
    run: (app, user) => {
      const { sid } = JSON.parse(Buffer.from(user.token.split('.')[1] ?? '', 'base64url').toString())
      return call(app, 'DELETE', `/account/sessions/${sid}`, undefined, mine(user))
    },
  },
  'PUT /account/password': {
    deletion: [200, 401],
    disabling: [200, 401],
    run: (app, user) => {
      const payload = { currentPassword: PASSWORD, newPassword: 'another long pass phrase 8' }
      return call(app, 'PUT', '/account/password', payload, mine(user))
    },
  },
  'PUT /account': {
    deletion: [200, 401],
    disabling: [200, 401],
    run: (app, user, round) => call(app, 'PUT', '/account', { firstName: `Ann ${round}` }, mine(user)),
  },
  'DELETE /account': {
    deletion: [204, 401],
    disabling: [204, 401],
    run: (app, user) => call(app, 'DELETE', '/account', { password: PASSWORD }, mine(user)),
  },
  'POST /account/verify-email': {
    deletion: [200, 400],
    disabling: [200, 400],
    token: 'verification',
    run: (app, _user, _round, token) => verify(app, token),
  },
  'POST /account/reset-password': {
    deletion: [200, 400],
    disabling: [200, 400],
    token: 'passwordReset',
    run: (app, _user, round, token) => reset(app, token, `a fresh pass phrase ${round}`),
  },
  'PUT /admin/users/:id': {
    deletion: [200, 404],
    disabling: [200],
    run: (app, { id }, round) => updateUser(app, id, { lastName: `Lee ${round}` }),
  },
  'DELETE /admin/users/:id/sessions': {
    deletion: [204, 404],
    disabling: [204],
    run: (app, { id }) => call(app, 'DELETE', `/admin/users/${id}/sessions`, undefined, asAdmin),
  },
}

await onEveryEngine(t, async (t, { build, newDatabase }) => {
  const DATABASE_URL = await newDatabase(t)
  const options = { hasher: quickHashing, env: { DATABASE_URL, MAIL_URL: 'off' } }
  const app = await build(t, options)
  const second = await build(t, options)

  const prepare = async (rival: Rival): Promise<{ user: SignedUp; token: string }> => {
    const user = await signUp(app)
    if (rival.token === undefined) return { user, token: '' }
    const { storage, clock } = app.services
    const { token, stored } = newEmailToken(rival.token, user.id, user.email, clock())
    await storage.emailTokens.add(
      stored,
      newEvent('user.changed', anonymous(null), user.id, clock(), { fields: [] }),
      null,
    )
    return { user, token }
  }

  /** @returns the errors. */
  const play = async (rival: Rival, round: number, deletes: boolean, seen: Map<string, number>) => {
    const { user, token } = await prepare(rival)
    const end = () =>
      deletes
        ? call(app, 'DELETE', `/admin/users/${user.id}`, undefined, asAdmin)
        : updateUser(app, user.id, { disabled: true })
    const at = round % 4 < 2 ? app : second
    const [ended, other] = await race(round, end, () => rival.run(at, user, round, token))
    const outcome = `${ended.statusCode} ${other.statusCode}`
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
    const errors: string[] = []
    const isAllowed = (deletes ? rival.deletion : rival.disabling).includes(other.statusCode)
    // The user's own deletion may come first.
    const hasEnded = ended.statusCode === (deletes ? 204 : 200) || ended.statusCode === 404
    if (!isAllowed || !hasEnded) errors.push(`${outcome} ${other.body}`)
    const { accessToken } = other.body === '' ? {} : other.json()
    for (const issued of [user.token, accessToken].filter(Boolean))
      if ((await accountStatus(app, issued)) !== 401) errors.push('a token is good')
    const events = await allEvents(app, { userId: user.id })
    const deletion = events.findIndex(({ type }) => type === 'user.deleted')
    if (deletion > 0) errors.push(`newer than user.deleted: ${events[0]?.type}`)
    if (deletes && deletion === -1) errors.push('no user.deleted')
    if (deletion !== -1 && events.some(({ ip, actor }) => ip !== null && actor.type !== 'adminKey'))
      errors.push('an address is kept')
    return errors
  }

  for (const [name, rival] of Object.entries(RIVALS))
    for (const deletes of [true, false])
      t.test(`${name} concurrent with ${deletes ? 'deletion' : 'disabling'}`, async t => {
        const errors: string[] = []
        const seen = new Map<string, number>()
        for (let round = 0; round < rounds.length; round += AT_ONCE) {
          const batch = rounds.slice(round, round + AT_ONCE)
          errors.push(...(await Promise.all(batch.map(each => play(rival, each, deletes, seen)))).flat())
        }
        t.strictSame(errors, [])
        t.comment(Object.fromEntries(seen))
      })
})
