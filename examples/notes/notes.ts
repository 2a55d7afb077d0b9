/** Notes of users: a feature with tables of its own. docs/extending.md explains it. */
import { createHash, randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import type { Command } from 'commander'
import {
  type Actor,
  type AuditEvent,
  counter,
  type DepsOf,
  defineErrors,
  defineFeature,
  duration,
  firstRow,
  hasLease,
  idOfCursor,
  integer,
  invalidatesNothing,
  type JobRun,
  lockUser,
  newId,
  OPERATOR,
  type Page,
  pageOf,
  type Query,
  query,
  recordStatement,
  refusalOf,
  refusedFor,
  ServiceError,
  type Steps,
  table,
  type User,
  type WithServices,
  type Write,
} from '#feature/declaration'

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

/** A code with which anybody reads a note once. */
interface CodesTable {
  digest: string
  user_key: number
  note_id: string
  expires_at: number
}

/** Milliseconds for which a code works. */
const CODE_LIFETIME = 3_600_000

const COLUMNS = 'id, text, created_at AS "createdAt", updated_at AS "updatedAt"'

// Another user's note is not found.
const OWN = 'id = $1 AND user_key = (SELECT key FROM users WHERE id = $2)'

/** Locks the user, so that concurrent calls count one after the other, and a removal of the user waits. */
function* addNote(
  note: Note,
  max: number,
  event: AuditEvent,
): Steps<Write<'added' | 'tooManyNotes' | 'refused'>> {
  const { userId } = event
  if (refusalOf(yield* lockUser(userId), { onlyEnabled: true }) !== null) return refusedFor(userId, 'refused')
  const added = yield* firstRow({
    text: `INSERT INTO notes (id, user_key, text, created_at, updated_at)
      SELECT $1, key, $3, $4, $5 FROM users
      WHERE id = $2 AND (SELECT count(*) FROM notes WHERE user_key = users.key) < $6 RETURNING id`,
    values: [note.id, userId, note.text, note.createdAt, note.updatedAt, max],
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

/** For a job: removes a note that has not been changed since. @returns whether the run still has its lease. */
function* expireNote(
  run: Omit<JobRun, 'signal'>,
  id: string,
  before: number,
  event: AuditEvent,
): Steps<Write<boolean>> {
  if (!(yield* hasLease(run))) return invalidatesNothing(false)
  yield* lockUser(event.userId)
  const removed = yield* firstRow({
    text: 'DELETE FROM notes WHERE id = $1 AND updated_at < $2 RETURNING id',
    values: [id, before],
  })
  if (removed !== undefined) yield recordStatement(event)
  return invalidatesNothing(true)
}

function* addCode(digest: string, noteId: string, userId: string, expiresAt: number): Steps<Write<boolean>> {
  const added = yield* firstRow({
    text: `INSERT INTO notes_codes (digest, user_key, note_id, expires_at)
      SELECT $3, user_key, id, $4 FROM notes WHERE ${OWN} RETURNING digest`,
    values: [noteId, userId, digest, expiresAt],
  })
  return invalidatesNothing(added !== undefined)
}

/** Deletes the code, so that of two concurrent calls one gets the note. */
function* useCode(digest: string, now: number): Steps<Write<Note | undefined>> {
  const used = yield* firstRow<{ noteId: string }>({
    text: 'DELETE FROM notes_codes WHERE digest = $1 AND $2 < expires_at RETURNING note_id AS "noteId"',
    values: [digest, now],
  })
  const note = yield* firstRow<Note>({
    text: `SELECT ${COLUMNS} FROM notes WHERE id = $1`,
    values: [used?.noteId ?? ''],
  })
  return invalidatesNothing(note)
}

const findNote = (id: string, userId: string): Query<Note | undefined> =>
  query(
    { name: 'notes-find', text: `SELECT ${COLUMNS} FROM notes WHERE ${OWN}`, values: [id, userId] },
    ([note]: readonly Note[]) => note,
  )

/** The notes of a user, newest first. @param before an id; `null` for the newest. */
const listNotes = (userId: string, before: string | null, limit: number): Query<readonly Note[]> =>
  query(
    {
      name: 'notes-list',
      text: `SELECT ${COLUMNS} FROM notes
        WHERE user_key = (SELECT key FROM users WHERE id = $1) AND id < $2 ORDER BY id DESC LIMIT $3`,
      values: [userId, before ?? 'g', limit],
    },
    (found: readonly Note[]) => found,
  )

/** Notes that have not been changed since, with their users. */
const listOldNotes = (before: number, limit: number): Query<readonly { id: string; userId: string }[]> =>
  query(
    {
      name: 'notes-old',
      text: `SELECT notes.id, users.id AS "userId" FROM notes JOIN users ON users.key = notes.user_key
        WHERE notes.updated_at < $1 ORDER BY notes.updated_at LIMIT $2`,
      values: [before, limit],
    },
    (found: readonly { id: string; userId: string }[]) => found,
  )

const noteId = Type.String({ description: 'The id of the note' })

export const ERRORS = defineErrors({
  noteNotFound: { status: 404, field: 'global', message: 'There is no such note' },
  noteCodeNotFound: { status: 404, field: 'code', message: 'does not work, or was used' },
  tooManyNotes: { status: 409, field: 'global', message: 'You have too many notes: remove one first' },
})

const parts = {
  operations: { addNote, changeNote, removeNote, expireNote, addCode, useCode },
  reads: { findNote, listNotes, listOldNotes },
  events: { 'note.created': Type.Object({ note: noteId }), 'note.expired': Type.Object({ note: noteId }) },
  mails: {
    noteAdded: {
      isRateLimited: true,
      places: ({ text }: { readonly text: string }) => ({ text }),
      example: { text: 'Buy milk' },
      en: { subject: 'You added a note', text: 'You added a note at {host}: {text}' },
    },
  },
  settings: {
    NOTES_MAX: { read: integer(1, 10_000), default: '100', description: 'how many notes a user can have' },
    NOTES_KEPT: {
      read: duration('1d'),
      default: '365d',
      description: 'how long a note is kept after its last change',
    },
  },
  metrics: { gatehouse_notes_added_total: counter('Notes that were added, by the kind of actor', 'actor') },
}

type NotesDeps = DepsOf<typeof parts>

const digestOf = (code: string): string => createHash('sha256').update(code).digest('base64url')

/** Use cases. They import neither Fastify nor an engine. */
export class Notes {
  readonly #deps: NotesDeps

  constructor(deps: NotesDeps) {
    this.#deps = deps
  }

  /** Adds a note, and mails its text to the user. @throws {ServiceError} `tooManyNotes`, `signInRequired` */
  async add(user: User, text: string, actor: Actor): Promise<Note> {
    const { store, mails, metrics, settings, newEvent, clock } = this.#deps
    const now = clock()
    const note = { id: newId(now), text, createdAt: now, updatedAt: now }
    const event = newEvent('note.created', actor, user.id, { note: note.id })
    const outcome = await store.addNote(note, settings.NOTES_MAX, event)
    if (outcome === 'tooManyNotes') throw new ServiceError(ERRORS.tooManyNotes)
    // Removed or disabled since the gate.
    if (outcome === 'refused') throw new ServiceError('signInRequired')
    metrics.gatehouse_notes_added_total.add({ actor: actor.type })
    mails.send('noteAdded', user, { text })
    return note
  }

  /** @throws {ServiceError} `noteNotFound` */
  async change(id: string, user: User, text: string): Promise<Note> {
    return found(await this.#deps.store.changeNote(id, user.id, text, this.#deps.clock()))
  }

  /** @throws {ServiceError} `noteNotFound` */
  async remove(id: string, user: User): Promise<void> {
    if (!(await this.#deps.store.removeNote(id, user.id))) throw new ServiceError(ERRORS.noteNotFound)
  }

  /** @throws {ServiceError} `noteNotFound` */
  async find(id: string, user: Pick<User, 'id'>): Promise<Note> {
    return found(await this.#deps.store.findNote(id, user.id))
  }

  /** A page of the notes of a user, newest first. @throws {ServiceError} `badCursor` */
  async list(user: Pick<User, 'id'>, limit: number, cursor?: string): Promise<Page<Note>> {
    return pageOf(await this.#deps.store.listNotes(user.id, idOfCursor(cursor), limit + 1), limit)
  }

  /** Makes a code with which anybody reads the note once, within an hour. @throws {ServiceError} `noteNotFound` */
  async share(id: string, user: User): Promise<string> {
    const { store, clock } = this.#deps
    const code = randomBytes(16).toString('base64url')
    if (!(await store.addCode(digestOf(code), id, user.id, clock() + CODE_LIFETIME)))
      throw new ServiceError(ERRORS.noteNotFound)
    return code
  }

  /** Uses a code of {@link share} up. @throws {ServiceError} `noteCodeNotFound` */
  async readShared(code: string): Promise<Note> {
    const note = await this.#deps.store.useCode(digestOf(code), this.#deps.clock())
    if (note === undefined) throw new ServiceError(ERRORS.noteCodeNotFound)
    return note
  }

  /** Removes notes that have not been changed for long, a few at a time. */
  async removeOld({ job, fence, signal }: JobRun): Promise<void> {
    const { store, settings, newEvent, clock } = this.#deps
    const before = clock() - settings.NOTES_KEPT
    for (let old = await store.listOldNotes(before, 100); old.length > 0; ) {
      for (const { id, userId } of old) {
        // Another process continues.
        signal.throwIfAborted()
        const event = newEvent('note.expired', OPERATOR, userId, { note: id })
        if (!(await store.expireNote({ job, fence }, id, before, event))) return
      }
      old = await store.listOldNotes(before, 100)
    }
  }
}

const found = (note: Note | undefined): Note => {
  if (note === undefined) throw new ServiceError(ERRORS.noteNotFound)
  return note
}

/** `notes list <user>` */
const commands = (program: Command, withServices: WithServices<{ notes: Notes }>): void => {
  program
    .command('notes')
    .description('Notes of users')
    .command('list <user>')
    .description('List the newest notes of the user with this id')
    .option('--database <url>', 'the database, in place of DATABASE_URL')
    .action((id: string, options: { database?: string }) =>
      withServices(options, async ({ notes }) => {
        const { results } = await notes.list({ id }, 100)
        for (const note of results) process.stdout.write(`${note.id} ${note.text}\n`)
      }),
    )
}

export const notes = defineFeature({
  name: 'notes',
  module: import.meta.url,
  ...parts,
  errors: ERRORS,
  migrations: {
    '0001_notes': {
      sql: ({ text, keyType }) => [
        `create table "notes" (
          "id" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "text" text not null,
          "created_at" bigint not null,
          "updated_at" bigint not null
        )`,
        'create index "notes_by_user_key" on "notes" ("user_key", "id")',
      ],
    },
    '0002_notes_by_updated_at': {
      sql: () => ['create index "notes_by_updated_at" on "notes" ("updated_at")'],
    },
    '0003_notes_codes': {
      sql: ({ text, keyType }) => [
        `create table "notes_codes" (
          "digest" ${text} primary key,
          "user_key" ${keyType} not null references "users" ("key") on delete cascade,
          "note_id" ${text} not null,
          "expires_at" bigint not null
        )`,
        'create index "notes_codes_by_user_key" on "notes_codes" ("user_key")',
        'create index "notes_codes_by_expires_at" on "notes_codes" ("expires_at")',
      ],
    },
  },
  tables: {
    notes: table<NotesTable>({ owner: 'user_key', key: 'id', updatedAt: 'updated_at' }),
    notes_codes: table<CodesTable>({
      owner: 'user_key',
      key: 'digest',
      cleanUp: { column: 'expires_at', after: 0 },
    }),
  },
  userScopes: { 'notes:read': 'Read your notes', 'notes:write': 'Add, change, share and remove your notes' },
  rateLimits: { 'new-notes': { points: 60, seconds: 60 }, 'shared-notes': { points: 20, seconds: 60 } },
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
  jobs: { removeOld: { every: 3_600_000, run: (deps, run) => new Notes(deps).removeOld(run) } },
  services: { notes: deps => new Notes(deps) },
  commands,
})
