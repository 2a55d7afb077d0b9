/** A sign-in method as a feature: a four-digit PIN for test accounts. */
import { createHash } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import {
  type ActingSession,
  type Actor,
  type AuditEvent,
  type AuthResult,
  type DepsOf,
  defineErrors,
  defineFeature,
  emailSubject,
  firstRow,
  invalidatesNothing,
  lockForSession,
  newId,
  type Query,
  query,
  recordStatement,
  refusedFor,
  ServiceError,
  type SessionClient,
  type Steps,
  table,
  type User,
  type Write,
} from '#feature/declaration'

const USER_KEY = '(SELECT key FROM users WHERE id = $1)'

export const ERRORS = defineErrors({
  wrongPin: { status: 401, field: 'pin', message: 'is wrong' },
  pinNotFound: { status: 404, field: 'global', message: 'Your account has no PIN' },
})

const Details = Type.Object({ pin: Type.String({ description: 'The id of the PIN' }) })

interface PinsTable {
  id: string
  user_key: number
  digest: string
  created_at: number
}

type StoredPin = Pick<PinsTable, 'id' | 'digest'> & { readonly createdAt: number }

/** Sets the PIN of the event's user, in a session that still exists. */
function* setPin(
  id: string,
  digest: string,
  session: ActingSession,
  event: AuditEvent,
): Steps<Write<'set' | 'notSignedIn'>> {
  const { userId, at } = event
  const refused = yield* lockForSession(userId, session)
  if (refused !== null) return refusedFor(userId, 'notSignedIn')
  yield { text: `DELETE FROM pins WHERE user_key = ${USER_KEY}`, values: [userId] }
  yield {
    text: 'INSERT INTO pins (id, user_key, digest, created_at) SELECT $2, key, $3, $4 FROM users WHERE id = $1',
    values: [userId, id, digest, at],
  }
  yield recordStatement(event)
  return invalidatesNothing('set')
}

/** In the transaction of the sign-in: another PIN meanwhile is not the one that was compared. */
function* usePin({ userId }: AuditEvent, id: string): Steps<'proved' | 'notProved'> {
  const found = yield* firstRow({
    text: `SELECT id FROM pins WHERE user_key = ${USER_KEY} AND id = $2`,
    values: [userId, id],
  })
  return found === undefined ? 'notProved' : 'proved'
}

const findPin = (userId: string): Query<StoredPin | undefined> =>
  query(
    {
      text: `SELECT id, digest, created_at AS "createdAt" FROM pins WHERE user_key = ${USER_KEY}`,
      values: [userId],
    },
    ([pin]: readonly StoredPin[]) => pin,
  )

const parts = {
  name: 'pins',
  module: import.meta.url,
  migrations: {
    '0001_pins': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('pins')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column =>
            column.notNull().unique().references('users.key').onDelete('cascade'),
          )
          .addColumn('digest', text, column => column.notNull())
          .addColumn('created_at', 'bigint', column => column.notNull())
          .execute()
      },
    },
  },
  tables: {
    pins: table<PinsTable>({
      owner: 'user_key',
      key: 'id',
      grantsAccess: { type: 'pin.removed', detail: 'pin' },
      signsIn: 'pin',
    }),
  },
  operations: { setPin },
  reads: { findPin },
  signInProofs: { usePin },
  events: { 'pin.set': Details, 'pin.removed': Details },
  errors: ERRORS,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
} as const satisfies Parameters<typeof defineFeature>[0]

type PinsDeps = DepsOf<typeof parts>

/** Guesses are limited by the throttle: four digits have no other protection. */
const digestOf = (userId: string, pin: string): string =>
  createHash('sha256').update(`${userId} ${pin}`).digest('base64url')

export interface PinCredentials {
  /** In canonical form. */
  readonly email: string
  readonly pin: string
  /** For users with an authenticator app. */
  readonly code?: string
}

/** The session of a request whose user has proved their identity. */
interface Owner {
  readonly user: User
  readonly session: ActingSession
  readonly actor: Actor
}

export class Pins {
  readonly #deps: PinsDeps

  constructor(deps: PinsDeps) {
    this.#deps = deps
  }

  /** @throws {ServiceError} `signInRequired` */
  async set({ user, session, actor }: Owner, pin: string): Promise<void> {
    const { store, newEvent } = this.#deps
    const id = newId()
    const event = newEvent('pin.set', actor, user.id, { pin: id })
    if ((await store.setPin(id, digestOf(user.id, pin), session, event)) !== 'set')
      throw new ServiceError('signInRequired')
  }

  /** @throws {ServiceError} `pinNotFound`, `lastSignInMethod`, `signInRequired` */
  async remove({ user, session, actor }: Owner): Promise<void> {
    const { store, signIns, newEvent } = this.#deps
    const found = await store.findPin(user.id)
    if (found === undefined) throw new ServiceError(ERRORS.pinNotFound)
    const event = newEvent('pin.removed', actor, user.id, { pin: found.id })
    const row = { table: 'pins', id: found.id }
    if ((await signIns.remove(row, { session, endsOthers: false }, event)) === 'notFound')
      throw new ServiceError(ERRORS.pinNotFound)
  }

  /** @throws {ServiceError} `wrongPin`, and as `signIns.complete` */
  signIn({ email, pin, code }: PinCredentials, client: SessionClient): Promise<AuthResult> {
    const { store, signIns, findUserByEmail, loginThrottle } = this.#deps
    const verify = async () => {
      const verified = await loginThrottle.check(emailSubject(email, client.ip), async () => {
        const user = await findUserByEmail(email)
        const found = user && (await store.findPin(user.id))
        return user && found?.digest === digestOf(user.id, pin) ? { user, id: found.id } : undefined
      })
      if (verified === undefined) throw new ServiceError(ERRORS.wrongPin)
      return { user: verified.user, proof: ['usePin', verified.id] as const }
    }
    return signIns.complete('pin', { client, code, verify })
  }
}

export const pins = defineFeature({
  ...parts,
  signInMethods: {
    pin: { amr: ['pin'], rejection: ERRORS.wrongPin, needsSecondFactor: true },
  },
  listMethods: async ({ store }, { id: userId }) => {
    const found = await store.findPin(userId)
    if (found === undefined) return []
    const { id, createdAt } = found
    return [{ method: 'pin', id, label: null, addedAt: createdAt, lastUsedAt: null, isFactor: false }]
  },
  services: { pins: deps => new Pins(deps) },
})
