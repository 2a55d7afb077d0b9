/** A feature for tests: values of several columns together, and of one column, must be unique. */
import {
  defineFeature,
  invalidatesNothing,
  query,
  type Steps,
  unlessTaken,
  type Write,
} from '#feature/declaration'
import { table } from '#storage/stored-feature'

interface MembersTable {
  id: string
  user_key: number
  organization_id: string
  email: string | null
  seat: number | null
}

export type Member = Omit<MembersTable, 'user_key'>

function* addMember(userId: string, { id, ...member }: Member): Steps<Write<'added' | 'taken'>> {
  const added = yield* unlessTaken({
    text: `INSERT INTO members (id, user_key, organization_id, email, seat)
      SELECT $2, key, $3, $4, $5 FROM users WHERE id = $1`,
    values: [userId, id, member.organization_id, member.email, member.seat],
  })
  return invalidatesNothing(added === 'taken' ? 'taken' : 'added')
}

const listMembers = () =>
  query({ text: 'SELECT id FROM members ORDER BY id LIMIT 100', values: [] }, (found: readonly Member[]) =>
    found.map(({ id }) => id),
  )

export const members = defineFeature({
  name: 'members',
  module: import.meta.url,
  migrations: {
    '0001_members': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('members')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column => column.notNull().references('users.key'))
          .addColumn('organization_id', 'text', column => column.notNull())
          .addColumn('email', 'text')
          .addColumn('seat', 'integer', column => column.unique())
          .addUniqueConstraint('members_by_user', ['user_key', 'organization_id'] as never)
          .addUniqueConstraint('members_by_email', ['email', 'organization_id'] as never)
          .execute()
      },
    },
  },
  tables: {
    members: table<MembersTable>({
      owner: 'user_key',
      key: 'id',
      unique: [['organization_id', 'email'], ['seat'], ['user_key', 'organization_id']],
    }),
  },
  operations: { addMember },
  reads: { listMembers },
  services: { members: ({ store }) => store },
})
