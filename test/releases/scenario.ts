/** The data of a release's stored databases, and what a later version has to return for it. */
import type { FastifyInstance } from 'fastify'
import { call, changeEmail, forgot } from '../support/account-routes.ts'
import { getEvents, impersonate } from '../support/admin-routes.ts'
import { createKey } from '../support/api-keys.ts'
import { addTotp } from '../support/authenticator-apps.ts'
import { asAdmin, bearer, type manualClock, PASSWORD, signIn, signUp, updateUser } from '../support/build.ts'
import { mailbox } from '../support/mailbox.ts'

/** bcrypt of `imported pass phrase 7`. */
const IMPORTED_HASH = '$2b$10$c3KKPmKviThSCN3FMENrVuGmJkRitdRR9eCgzD/HvRuBUoqerY2Xi'
export const IMPORTED_PASSWORD = 'imported pass phrase 7'

/** Has an authenticator app from 0.3.0 on. */
export const FAY = 'fay@example.com'

/** When the recording ended, in milliseconds since the epoch. Tests start their clock a minute later. */
export interface Recorded {
  readonly at: number
  /** The results of `GET /admin/users`, in order of creation. */
  readonly users: readonly Record<string, unknown>[]
  /** The results of `GET /admin/events?sort=at`. */
  readonly events: readonly { readonly id: string }[]
  /** Its `nextCursor`: the end of the log. */
  readonly cursor: string
  /** The results of `GET /account/sessions` with `tokens.active`. */
  readonly sessions: readonly unknown[]
  readonly tokens: {
    readonly active: string
    readonly signedOut: string
    readonly disabled: string
    readonly impersonated: string
    readonly passwordReset: string
    readonly emailChange: string
    /** From 0.3.0 on: of a user with an authenticator app. */
    readonly apiKey?: string
    readonly recoveryCode?: string
  }
}

const results = async (app: FastifyInstance, url: string, headers: Record<string, string>) =>
  (await app.inject({ url, headers })).json().results

export const recordedUsers = (app: FastifyInstance) => results(app, '/admin/users?sort=createdAt', asAdmin)

export const recordedSessions = (app: FastifyInstance, token: string) =>
  results(app, '/account/sessions', bearer(token))

/** Fills an empty database through the API. */
export const fill = async (
  app: FastifyInstance,
  clock: ReturnType<typeof manualClock>,
): Promise<Recorded> => {
  const mails = mailbox(app)
  const ann = await signUp(app, { email: 'ann@example.com', firstName: 'Ann', lastName: 'Ångström' })
  const confirmation = { token: await mails.token(ann.email, 'verification') }
  await call(app, 'POST', '/account/verify-email', confirmation, bearer(ann.token))
  clock.advance(1_000)
  const ben = await signUp(app, { email: 'ben@example.com', firstName: 'Ben' })
  await updateUser(app, ben.id, { disabled: true })
  clock.advance(1_000)
  const imported = {
    id: '01900000-0000-7000-8000-000000000001',
    email: 'cat@example.com',
    passwordHash: IMPORTED_HASH,
    createdAt: '2024-06-10T00:00:00.000Z',
    lastRequestAt: '2024-07-01T12:00:00.000Z',
  }
  await app.inject({
    method: 'POST',
    url: '/admin/users/import',
    headers: { ...asAdmin, 'content-type': 'application/x-ndjson' },
    payload: `${JSON.stringify(imported)}\n`,
  })
  clock.advance(1_000)
  const other = (await signIn(app, ann.email)).json().accessToken
  await call(app, 'POST', '/account/sign-out', undefined, bearer(other))
  await forgot(app, ann.email)
  const passwordReset = await mails.token(ann.email, 'passwordReset')
  await changeEmail(app, ann.token, { password: PASSWORD, email: 'ann.new@example.com' })
  const emailChange = await mails.token('ann.new@example.com', 'emailChange')
  const impersonated = (await impersonate(app, ann.id)).json().accessToken
  const fay = await signUp(app, { email: FAY })
  const { token: apiKey } = await createKey(app, fay.token)
  const { recoveryCodes } = await addTotp(app, fay.token)
  const dan = await signUp(app, { email: 'dan@example.com' })
  await call(app, 'DELETE', '/account', { password: PASSWORD }, bearer(dan.token))
  clock.advance(120_000)
  await call(app, 'GET', '/account', undefined, bearer(ann.token))
  const log = (await getEvents(app, { sort: 'at', limit: 100 })).json()
  return {
    at: clock.now(),
    users: await recordedUsers(app),
    events: log.results,
    cursor: log.nextCursor,
    sessions: await recordedSessions(app, ann.token),
    tokens: {
      active: ann.token,
      signedOut: other,
      disabled: ben.token,
      impersonated,
      passwordReset,
      emailChange,
      apiKey,
      recoveryCode: recoveryCodes[0] as string,
    },
  }
}
