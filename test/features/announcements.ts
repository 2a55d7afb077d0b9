/** A feature for tests: the rows of its table belong to no user. */
import { defineFeature, invalidatesNothing, query, type Steps, type Write } from '#feature/declaration'
import { table } from '#storage/stored-feature'

interface AnnouncementsTable {
  id: string
  text: string
  updated_at: number
}

function* announce(id: string, text: string, at: number): Steps<Write<void>> {
  yield {
    text: 'INSERT INTO announcements (id, text, updated_at) VALUES ($1, $2, $3)',
    values: [id, text, at],
  }
  return invalidatesNothing(undefined)
}

const listAnnouncements = () =>
  query(
    { text: 'SELECT text FROM announcements ORDER BY id LIMIT 100', values: [] },
    (found: readonly { text: string }[]) => found.map(({ text }) => text),
  )

export const announcements = defineFeature({
  name: 'announcements',
  module: import.meta.url,
  migrations: {
    '0001_announcements': {
      async up(db, { text }) {
        await db.schema
          .createTable('announcements')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('text', 'text', column => column.notNull().unique())
          .addColumn('updated_at', 'bigint', column => column.notNull())
          .execute()
        await db.schema
          .createIndex('announcements_by_updated_at')
          .on('announcements')
          .column('updated_at')
          .execute()
      },
    },
  },
  tables: {
    announcements: table<AnnouncementsTable>({
      owner: null,
      key: 'id',
      updatedAt: 'updated_at',
      cleanUp: { column: 'updated_at', after: 1_000 },
    }),
  },
  operations: { announce },
  reads: { listAnnouncements },
  services: { announcements: ({ store }) => store },
})
