/** What the store runs for the console. The writer thread of SQLite imports this module. */
import { type StoredFeature, table } from '#storage/stored-feature'
import { type ConsoleHistoryTable, historyOperations, historyReads } from './stored-history.ts'
import { type ConsoleSessionsTable, sessionOperations, sessionReads } from './stored-sessions.ts'

export const storedConsole = {
  name: 'console',
  module: import.meta.url,
  migrations: {
    '0001_console': {
      sql: ({ text }) => [
        `create table "console_sessions" (
          "digest" ${text} primary key,
          "admin_key" text not null,
          "created_at" bigint not null,
          "expires_at" bigint not null
        )`,
        'create index "console_sessions_by_expires_at" on "console_sessions" ("expires_at")',
        `create table "console_history" (
          "id" ${text} primary key,
          "resolution" ${text} not null,
          "begins_at" bigint not null,
          "expires_at" bigint not null,
          "data" text not null
        )`,
        'create index "console_history_by_begins_at" on "console_history" ("resolution", "begins_at")',
        'create index "console_history_by_expires_at" on "console_history" ("expires_at")',
      ],
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
