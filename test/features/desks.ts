/** A feature for tests: desks that a user holds. It caches them, guards routes by them, and takes part in the removal of users. */
import {
  defineErrors,
  defineFeature,
  firstRow,
  invalidates,
  query,
  type RouteGuard,
  ServiceError,
  type Steps,
  table,
  type Write,
} from '#feature/declaration'

interface DesksTable {
  id: string
  user_key: number
}

const ERRORS = defineErrors({
  deskMissing: { status: 403, field: 'global', message: 'This needs a desk' },
  deskHeld: { status: 409, field: 'global', message: 'Give your desk back first' },
})

function* hold(id: string, userId: string): Steps<Write<void>> {
  yield {
    text: 'INSERT INTO desks (id, user_key) SELECT $1, key FROM users WHERE id = $2',
    values: [id, userId],
  }
  return invalidates(userId, undefined)
}

const findDesk = (userId: string) =>
  query(
    {
      name: 'find',
      text: 'SELECT id FROM desks WHERE user_key = (SELECT key FROM users WHERE id = $1) LIMIT 1',
      values: [userId],
    },
    ([desk]: readonly { id: string }[]) => desk?.id,
  )

/** What `userRemoved` was told. */
export const told: unknown[] = []

/** Calls of `findDesk` by the guard. */
export const loads: string[] = []

declare module 'fastify' {
  interface FastifyContextConfig {
    desk?: true
  }
  interface FastifyRequest {
    readonly desk: string
  }
}

export const desks = defineFeature({
  name: 'desks',
  module: import.meta.url,
  migrations: {
    '0001_desks': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('desks')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column =>
            column.notNull().references('users.key').onDelete('cascade'),
          )
          .execute()
        await db.schema.createIndex('desks_by_user_key').on('desks').column('user_key').execute()
      },
    },
  },
  tables: { desks: table<DesksTable>({ owner: 'user_key', key: 'id' }) },
  operations: { hold },
  reads: { findDesk },
  errors: ERRORS,
  services: { desks: ({ store }) => store },
  guards: {
    desk({ store, openCache }): RouteGuard {
      const cache = openCache({
        load: id => {
          loads.push(id)
          return store.findDesk(id)
        },
        max: 10,
      })
      const admit = (desk: string | undefined): string => {
        if (desk === undefined) throw new ServiceError(ERRORS.deskMissing)
        return desk
      }
      return {
        problemOf: declared => (declared === true ? null : 'declares a desk that is not true'),
        admit({ user }) {
          const desk = cache.get(user.id)
          return desk instanceof Promise ? desk.then(admit) : admit(desk)
        },
      }
    },
  },
  userRemoval: {
    *remove({ userId }, by) {
      const desk = yield* firstRow<{ id: string }>({
        text: 'SELECT id FROM desks WHERE user_key = (SELECT key FROM users WHERE id = $1)',
        values: [userId],
      })
      if (desk !== undefined && by === 'user') return { refusal: 'deskHeld' }
      return { evicts: [], ...(desk !== undefined && { outcome: desk.id }) }
    },
  },
  userRemoved(_deps, desk: string) {
    told.push(desk)
  },
})
