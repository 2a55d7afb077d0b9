/** A feature for tests: its table has no `ON DELETE CASCADE`, a value that must be unique, and columns of every type. */
import { sql } from 'kysely'
import { defineFeature } from '#feature/declaration'
import { table } from '#storage/stored-feature'

interface LabelsTable {
  id: string
  user_key: number
  name: string | null
  'a "quoted" name': string | null
  size: bigint | null
  rank: number | null
  weight: number | null
  details: string | null
  content: Uint8Array | null
}

export const labels = defineFeature({
  name: 'labels',
  module: import.meta.url,
  migrations: {
    '0001_labels': {
      async up(db, { engine, text, keyType }) {
        await db.schema
          .createTable('labels')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column => column.notNull().references('users.key'))
          .addColumn('name', 'text')
          .addColumn('a "quoted" name', 'text')
          .addColumn('size', 'bigint')
          .addColumn('rank', 'integer')
          .addColumn('weight', engine === 'sqlite' ? 'real' : 'double precision')
          .addColumn('details', engine === 'sqlite' ? 'text' : 'jsonb')
          .addColumn('content', engine === 'sqlite' ? 'blob' : 'bytea')
          .addUniqueConstraint('labels_by_name', ['user_key', 'name'] as never)
          .execute()
      },
    },
    '0002_labelled': {
      async up(db, { text }) {
        await db.schema
          .createTable('labelled')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('owner', 'bigint', column => column.notNull())
          .addColumn('label', text, column => column.notNull().references('labels.id'))
          .execute()
        await sql`CREATE INDEX labelled_by_owner ON labelled (owner)`.execute(db)
      },
    },
  },
  tables: {
    labels: table<LabelsTable>({ owner: 'user_key', key: 'id' }),
    labelled: table<{ id: string; owner: number; label: string }>({ owner: 'owner', key: 'id' }),
  },
})
