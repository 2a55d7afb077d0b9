/** What the store runs for the console. The writer thread of SQLite imports this module. */
import { type StoredFeature, table } from '#storage/stored-feature'
import { type ConsoleHistoryTable, historyOperations, historyReads } from './stored-history.ts'
import { type ConsoleSessionsTable, sessionOperations, sessionReads } from './stored-sessions.ts'

export const storedConsole = {
  name: 'console',
  module: import.meta.url,
  migrations: {
    '0001_console': {
      async up(db, { text }) {
        await db.schema
          .createTable('console_sessions')
          .addColumn('digest', text, column => column.primaryKey())
          .addColumn('admin_key', 'text', column => column.notNull())
          .addColumn('created_at', 'bigint', column => column.notNull())
          .addColumn('expires_at', 'bigint', column => column.notNull())
          .execute()
        await db.schema
          .createIndex('console_sessions_by_expires_at')
          .on('console_sessions')
          .column('expires_at')
          .execute()
        await db.schema
          .createTable('console_history')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('resolution', text, column => column.notNull())
          .addColumn('begins_at', 'bigint', column => column.notNull())
          .addColumn('expires_at', 'bigint', column => column.notNull())
          .addColumn('data', 'text', column => column.notNull())
          .execute()
        await db.schema
          .createIndex('console_history_by_begins_at')
          .on('console_history')
          .columns(['resolution', 'begins_at'])
          .execute()
        await db.schema
          .createIndex('console_history_by_expires_at')
          .on('console_history')
          .column('expires_at')
          .execute()
      },
    },
  },
  tables: {
    console_sessions: table<ConsoleSessionsTable>({
      owner: null,
      key: 'digest',
      updatedAt: 'expires_at',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
    console_history: table<ConsoleHistoryTable>({
      owner: null,
      key: 'id',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  operations: { ...sessionOperations, ...historyOperations },
  reads: { ...sessionReads, ...historyReads },
} satisfies StoredFeature
