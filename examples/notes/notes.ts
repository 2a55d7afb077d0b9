/** Notes of users: a feature with a table of its own. docs/extending.md explains it. */
import { Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import {
  type Actor,
  type AuditEvent,
  defineFeature,
  type FeatureDeps,
  firstRow,
  invalidatesNothing,
  lockUser,
  type MailSite,
  type MaybePromise,
  newId,
  type Query,
  query,
  recordStatement,
  refusalOf,
  refusedFor,
  type Steps,
  table,
  type User,
  type WithServices,
  type Write,
} from '../../src/feature.ts'

/** Timestamps are milliseconds since the epoch. */
export interface Note {
  readonly id: string
  readonly text: string
  readonly createdAt: number
  readonly updatedAt: number
}

interface NotesTable {
  id: string
  user_key: number
  text: string
  created_at: number
  updated_at: number
}

/** Notes of one user. */
const MAX_NOTES = 100

/** Milliseconds after its last change until a note is removed. */
const YEAR = 365 * 86_400_000

const COLUMNS = 'id, text, created_at AS "createdAt", updated_at AS "updatedAt"'

// Another user's note is not found.
const OWN = 'id = $1 AND user_key = (SELECT key FROM users WHERE id = $2)'

/** Locks the user, so that concurrent calls count one after the other, and a removal of the user waits. */
function* addNote(note: Note, event: AuditEvent): Steps<Write<'added' | 'tooManyNotes' | 'refused'>> {
  const { userId } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refusedFor(userId, 'refused')
  const added = yield* firstRow({
    text: `INSERT INTO notes (id, user_key, text, created_at, updated_at)
      SELECT $1, key, $3, $4, $5 FROM users
      WHERE id = $2 AND (SELECT count(*) FROM notes WHERE user_key = users.key) < ${MAX_NOTES} RETURNING id`,
    values: [note.id, userId, note.text, note.createdAt, note.updatedAt],
  })
  if (added === undefined) return invalidatesNothing('tooManyNotes')
  yield recordStatement(event)
  return invalidatesNothing('added')
}

function* changeNote(id: string, userId: string, text: string, at: number): Steps<Write<Note | undefined>> {
  const changed = yield* firstRow<Note>({
    text: `UPDATE notes SET text = $3, updated_at = $4 WHERE ${OWN} RETURNING ${COLUMNS}`,
    values: [id, userId, text, at],
  })
  return invalidatesNothing(changed)
}

function* removeNote(id: string, userId: string): Steps<Write<boolean>> {
  const removed = yield* firstRow({
    text: `DELETE FROM notes WHERE ${OWN} RETURNING id`,
    values: [id, userId],
  })
  return invalidatesNothing(removed !== undefined)
}

const findNote = (id: string, userId: string): Query<Note | undefined> =>
  query(
    { name: 'note', text: `SELECT ${COLUMNS} FROM notes WHERE ${OWN}`, values: [id, userId] },
    ([note]: readonly Note[]) => note,
  )

/** The newest notes of a user. */
const listNotes = (userId: string): Query<readonly Note[]> =>
  query(
    {
      name: 'notes',
      text: `SELECT ${COLUMNS} FROM notes
        WHERE user_key = (SELECT key FROM users WHERE id = $1) ORDER BY id DESC LIMIT ${MAX_NOTES}`,
      values: [userId],
    },
    (found: readonly Note[]) => found,
  )

const OPERATIONS = { addNote, changeNote, removeNote }
const READS = { findNote, listNotes }

const EVENTS = {
  'note.created': Type.Object({ note: Type.String({ description: 'The id of the note' }) }),
}

const MAILS = {
  noteAdded: {
    subject: 'You added a note',
    isRateLimited: true,
    body: ({ host }: MailSite, { text }: { readonly text: string }) => [`You added a note at ${host}:`, text],
  },
}

type NotesDeps = FeatureDeps<typeof OPERATIONS, typeof READS, typeof EVENTS, typeof MAILS>

/** Use cases. They import neither Fastify nor an engine. */
export class Notes {
  readonly #deps: NotesDeps

  constructor(deps: NotesDeps) {
    this.#deps = deps
  }

  /** Adds a note, and mails its text to the user. */
  async add(user: User, text: string, actor: Actor): Promise<Note | 'tooManyNotes' | 'refused'> {
    const { store, mails, newEvent, clock } = this.#deps
    const now = clock()
    const note = { id: newId(now), text, createdAt: now, updatedAt: now }
    const outcome = await store.addNote(note, newEvent('note.created', actor, user.id, { note: note.id }))
    if (outcome !== 'added') return outcome
    mails.send('noteAdded', user.email, { text })
    return note
  }

  /** @returns `undefined` unless the note is the user's. */
  change(id: string, user: User, text: string): Promise<Note | undefined> {
    return this.#deps.store.changeNote(id, user.id, text, this.#deps.clock())
  }

  /** @returns false unless the note is the user's. */
  remove(id: string, user: User): Promise<boolean> {
    return this.#deps.store.removeNote(id, user.id)
  }

  /** @returns `undefined` unless the note is the user's. */
  find(id: string, user: Pick<User, 'id'>): MaybePromise<Note | undefined> {
    return this.#deps.store.findNote(id, user.id)
  }

  /** @returns the notes of a user, newest first. */
  list(user: Pick<User, 'id'>): MaybePromise<readonly Note[]> {
    return this.#deps.store.listNotes(user.id)
  }
}

/** `notes list <user>` */
const commands = (program: Command, withServices: WithServices<{ notes: Notes }>): void => {
  program
    .command('notes')
    .description('Notes of users')
    .command('list <user>')
    .description('List the notes of the user with this id')
    .option('--database <url>', 'the database, in place of DATABASE_URL')
    .action((id: string, options: { database?: string }) =>
      withServices(options, async ({ notes }) => {
        for (const note of await notes.list({ id })) process.stdout.write(`${note.id} ${note.text}\n`)
      }),
    )
}

export const notes = defineFeature({
  name: 'notes',
  module: import.meta.url,
  migrations: {
    '0001_notes': {
      async up(db, { text, keyType }) {
        await db.schema
          .createTable('notes')
          .addColumn('id', text, column => column.primaryKey())
          .addColumn('user_key', keyType, column =>
            column.notNull().references('users.key').onDelete('cascade'),
          )
          .addColumn('text', 'text', column => column.notNull())
          .addColumn('created_at', 'bigint', column => column.notNull())
          .addColumn('updated_at', 'bigint', column => column.notNull())
          .execute()
        await db.schema.createIndex('notes_by_user_key').on('notes').columns(['user_key', 'id']).execute()
      },
    },
    '0002_notes_by_updated_at': {
      async up(db) {
        await db.schema.createIndex('notes_by_updated_at').on('notes').column('updated_at').execute()
      },
    },
  },
  tables: {
    notes: table<NotesTable>({
      owner: 'user_key',
      key: 'id',
      updatedAt: 'updated_at',
      cleanUp: { column: 'updated_at', after: YEAR },
    }),
  },
  operations: OPERATIONS,
  reads: READS,
  events: EVENTS,
  mails: MAILS,
  userScopes: { 'notes:read': 'Read your notes', 'notes:write': 'Add, change and remove your notes' },
  services: { notes: deps => new Notes(deps) },
  commands,
})
