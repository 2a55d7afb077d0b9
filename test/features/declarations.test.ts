/** Features that cannot be used as they are declared: one sentence at the start, and nothing changes (docs/design.md, "Features"). */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Type } from '@sinclair/typebox'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { integer } from '#base/settings/readers'
import { counter } from '#base/statistics/metric'
import { COUNTERS, RATE_LIMITS, WRITE_LIMIT } from '#core/rate-limits/limits'
import type { AccountFeature } from '#core/store/account-feature'
import { openPostgresStorage } from '#core/store/postgres'
import { openSqliteStorage } from '#core/store/sqlite'
import type { Storage } from '#core/store/store'
import { rateLimitsOf } from '#feature/assembly'
import { checkFeatures } from '#feature/checks'
import { defineFeature, type Feature } from '#feature/declaration'
import { allFeatures, BUILT_IN_FEATURES } from '#features/built-in'
import type { OpenRateLimit } from '#storage/rate-limit'
import { openDatabase } from '#storage/sqlite/database'
import type { FeatureMigration } from '#storage/stored-feature'
import { notes } from '../../examples/notes/notes.ts'
import { add } from '../storage/contract/fixtures.ts'
import { build as buildApp, temporaryFolder } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { createDatabase, query } from '../support/postgres.ts'
import { storedRows } from '../support/stored-rows.ts'
import { pooledWriter } from '../support/writer-pool.ts'
import { labels } from './labels.ts'

/** As from JavaScript, without checks of types. */
const changed = (fields: Record<string, unknown>): Feature => ({ ...notes, ...fields }) as unknown as Feature

const withTable = (fields: Record<string, unknown>, name = 'notes'): Feature =>
  changed({ tables: { [name]: { ...notes.tables?.notes, ...fields } } })

const other = (fields: Record<string, unknown>): Feature => ({ ...labels, ...fields }) as unknown as Feature

const SETTING = { read: integer(1, 9), default: '1', description: 'how many' }

const METHOD = { amr: ['pin'], rejection: 'wrongCredentials', needsSecondFactor: true }

const METHOD_OF = 'of the feature notes'

const LIMIT = { points: 1, seconds: 1 }

const ERROR = { code: 'noteLost', status: 404, field: 'global', message: 'is lost' }

/** Names that do not have the form of the others of their member. */
const MISNAMED: readonly (readonly [member: string, name: string, example: string, value: unknown])[] = [
  ['migrations', 'notes', '0001_notes', { up() {} }],
  ['tables', 'Notes"', 'notes_shared', notes.tables?.notes],
  ['tables', 'n'.repeat(64), 'notes_shared', notes.tables?.notes],
  ['tables', 'pg_class', 'notes_shared', notes.tables?.notes],
  ['events', 'created', 'note.created', Type.Object({})],
  ['services', 'Notes', 'notes', () => ({})],
  ['services', 'then', 'notes', () => ({})],
  ['userScopes', 'notes', 'notes:read', 'Read notes'],
  ['adminScopes', 'notes:Read', 'notes:read', 'Read notes'],
  ['settings', 'notes_max', 'NOTES_KEPT', SETTING],
  ['errors', 'NoteLost', 'noteNotFound', ERROR],
  ['rateLimits', 'New', 'new-notes', LIMIT],
  ['metrics', 'Notes_total', 'gatehouse_notes_added_total', counter('Notes')],
  ['jobs', 'Remove', 'removeOld', { every: 1_000, run() {} }],
  ['backgroundTasks', 'Deliver', 'deliver', () => undefined],
  ['consumers', 'Watch', 'searchIndex', { handle: () => undefined }],
  ['signInMethods', 'Pin', 'emailCode', METHOD],
  ['guards', 'Desk', 'organization', () => ({})],
]

/** Names that the core uses. */
const OF_CORE: readonly (readonly [kind: string, member: string, name: string, value: unknown])[] = [
  ['table', 'tables', 'users', notes.tables?.notes],
  ['event', 'events', 'user.created', Type.Object({})],
  ['user scope', 'userScopes', 'account:read', 'Read the account'],
  ['admin scope', 'adminScopes', 'users:read', 'Read users'],
  ['error', 'errors', 'userNotFound', ERROR],
  ['sign-in method', 'signInMethods', 'password', METHOD],
  ...['write', 'mails', 'clean-up', 'throttle-events', 'login-lock'].map(
    name => ['rate limit', 'rateLimits', name, LIMIT] as const,
  ),
]

const INVALID: readonly (readonly [string, readonly unknown[]])[] = [
  ['The feature notes is declared twice', [notes, notes]],
  ['The declaration of the feature undefined is not valid: Expected object', [undefined]],
  ['The name of the feature "Notes" must be lower case, such as notes', [changed({ name: 'Notes' })]],
  ['The name of the feature "no\\"tes" must be lower case, such as notes', [changed({ name: 'no"tes' })]],
  [
    'The module of the feature "notes" must be import.meta.url of the file that exports it',
    [changed({ module: undefined })],
  ],
  ...MISNAMED.map(
    ([member, name, example, value]) =>
      [
        `The ${member}.${name} of the feature "notes" must be named like ${example}`,
        [changed({ [member]: { [name]: value } })],
      ] as const,
  ),
  ...OF_CORE.map(
    ([kind, member, name, value]) =>
      [
        `The ${kind} ${name} is declared twice: by the core and by the feature notes`,
        [changed({ [member]: { [name]: value } })],
      ] as const,
  ),
  [
    'The table notes is declared twice: by the feature notes and by the feature labels',
    [notes, other({ tables: notes.tables })],
  ],
  [
    'The service notes is declared twice: by the feature notes and by the feature labels',
    [notes, other({ services: notes.services })],
  ],
  ...[undefined, '', 7].map(
    owner =>
      [
        'The tables.notes.owner of the feature "notes" must be the column with the key of the user, or null if its rows belong to no user',
        [withTable({ owner })],
      ] as const,
  ),
  ...['isFactor', 'isMailed', 'grantsAccess'].map(
    member =>
      [
        `The table notes ${METHOD_OF} needs an owner: rows that belong to no user are neither factors, nor mailed, nor grant access`,
        [withTable({ owner: null, [member]: { type: 'note.deleted', detail: 'note' } })],
      ] as const,
  ),
  ...[undefined, { type: 'note.deleted', detail: 'note' }].map(
    grantsAccess =>
      [
        `The table notes ${METHOD_OF} needs grantsAccess, and a sign-in method of the feature with the name "pin"`,
        [withTable({ signsIn: 'pin', grantsAccess })],
      ] as const,
  ),
  [
    'The migration 0001_notes of the feature notes has no function sql and no function up',
    [changed({ migrations: { '0001_notes': {} } })],
  ],
  [
    `The feature notes has an operation and a read with the name addNote`,
    [changed({ reads: { addNote: notes.reads?.findNote } })],
  ],
  [
    `The setting NOTES_MAX ${METHOD_OF} has the default "0", which its own reader rejects: it must be an integer from 1 to 9`,
    [changed({ settings: { NOTES_MAX: { ...SETTING, default: '0' } } })],
  ],
  [
    'The signInMethods.pin.amr.0 of the feature "notes" is not valid: Expected string to match \'^[a-z][a-z0-9]*$\'',
    [changed({ signInMethods: { pin: { ...METHOD, amr: ['two words'] } } })],
  ],
  [
    'The jobs.removeOld.every of the feature "notes" is not valid: Expected number to be greater or equal to 1000',
    [changed({ jobs: { removeOld: { every: 10, run() {} } } })],
  ],
  [
    `The consumer watch ${METHOD_OF} names an unknown type of event: "user.lost"`,
    [changed({ consumers: { watch: { types: ['user.lost'], handle: () => undefined } } })],
  ],
  [
    'The second factor is declared twice: by the feature notes and by the feature labels',
    [changed({ secondFactor: () => ({}) }), other({ secondFactor: () => ({}) })],
  ],
  ...['./routes', new URL('nowhere/', import.meta.url)].map(
    routes =>
      [
        `The routes ${METHOD_OF} must be the URL of a folder, such as new URL('routes/', import.meta.url): there is no folder ${routes}`,
        [changed({ routes })],
      ] as const,
  ),
]

/** Names of members that only the service as a whole knows. */
const OF_SERVICE: readonly (readonly [string, readonly Feature[]])[] = [
  [
    'The setting DATABASE_URL_FILE is declared twice: by the core and by the feature notes',
    [changed({ settings: { DATABASE_URL_FILE: SETTING } })],
  ],
  [
    'The setting NOTES_KEY_FILE is declared twice: by the feature notes and by the feature labels',
    [
      changed({ settings: { NOTES_KEY: { ...SETTING, canBeFile: true } } }),
      other({ settings: { NOTES_KEY_FILE: SETTING } }),
    ],
  ],
  [
    'The mail passwordReset is declared twice: by the core and by the feature notes',
    [changed({ mails: { passwordReset: notes.mails?.noteAdded } })],
  ],
  [
    'The mail noteAdded is declared twice: by the feature notes and by the feature labels',
    [notes, other({ mails: notes.mails })],
  ],
  [
    'The metric gatehouse_mails_sent_total is declared twice: by the core and by the feature notes',
    [changed({ metrics: { gatehouse_mails_sent_total: counter('Mails') } })],
  ],
]

t.test('a declaration that is not valid is refused before the database is opened', async t => {
  for (const [message, features] of INVALID)
    t.throws(() => checkFeatures(features as readonly Feature[]), {
      name: 'FeatureError',
      code: 'FEATURE',
      message,
    })
  t.doesNotThrow(() => checkFeatures([notes, labels]))
  const url = await createDatabase(t)
  for (const [message, features] of [
    ...OF_SERVICE,
    ['The feature notes is declared twice', [notes, notes]],
  ] as const)
    await t.rejects(buildApp(t, { env: { DATABASE_URL: url }, features }), { code: 'FEATURE', message })
  await t.rejects(query(url, 'SELECT FROM users'), 'a new database is empty')
})

t.test('no counter that the service opens can be a rate limit of a feature', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const storage = await openSqliteStorage(file, BUILT_IN_FEATURES, pooledWriter)
  const opened = new Set<string>()
  const openRateLimit: OpenRateLimit = options => {
    opened.add(options.name)
    return storage.openRateLimit(options)
  }
  const counting = defineFeature({
    name: 'counting',
    module: import.meta.url,
    services: { counting: deps => deps.openRateLimit({ name: 'mails', points: 1, seconds: 1 }) },
  })
  const features = [counting]
  await buildApp(t, { env: { RATE_LIMIT: 'on' }, storage: { ...storage, openRateLimit }, features })
  t.ok(opened.delete('counting.mails'), 'a counter that a feature opens is its own')
  const reserved = [...Object.keys(RATE_LIMITS.perAddress), WRITE_LIMIT, ...COUNTERS]
  // Those of features: counters that they open, and limits that they declare.
  const declared = Object.keys(rateLimitsOf(allFeatures()))
  const ofCore = [...opened].filter(name => !name.includes('.') && !declared.includes(name))
  t.strictSame(ofCore.sort(), reserved.sort())
})

t.test('on SQLite, the module must export the feature with its operations', async t => {
  const file = join(temporaryFolder(t), 'test.db')
  const missing = pathToFileURL(join(temporaryFolder(t), 'missing.ts')).href
  const cases: [AccountFeature, RegExp][] = [
    [
      { ...notes, name: 'other' },
      /^The module .*notes\.ts does not export the feature other\. Declare it there with/,
    ],
    [{ ...notes, module: missing }, /^The module .*missing\.ts of the feature notes cannot be imported: /],
    [
      { ...notes, operations: { ...notes.operations, addNote: (() => undefined) as never } },
      /^The module .*notes\.ts exports a feature notes with another operation addNote than the one that is listed$/,
    ],
  ]
  for (const [feature, message] of cases)
    await t.rejects(openSqliteStorage(file, [feature]), { name: 'FeatureError', message })
  t.throws(() => openDatabase(file, 1_000), 'no file is created')
})

/** A migration of one statement. */
const migration = (text: string): FeatureMigration => ({
  async up(db) {
    await sql.raw(text).execute(db)
  },
})

const THINGS = migration('CREATE TABLE things (id text PRIMARY KEY, user_key bigint NOT NULL UNIQUE)')
const MORE = migration('ALTER TABLE things ADD COLUMN more text')

/** The same with the query builder, so that a start recognises it without Kysely. */
const BUILT = {
  things: {
    async up(db, { text, keyType }) {
      await db.schema
        .createTable('things')
        .addColumn('id', text, column => column.primaryKey())
        .addColumn('user_key', keyType, column => column.notNull().unique())
        .execute()
    },
  },
  more: {
    async up(db) {
      await db.schema.alterTable('things').addColumn('more', 'text').execute()
    },
  },
  changed: {
    async up(db) {
      await db.schema.alterTable('things').addColumn('more', 'bigint').execute()
    },
  },
  zoo: {
    async up(db) {
      await db.schema.createTable('zoo').addColumn('id', 'text').execute()
    },
  },
} satisfies Record<string, FeatureMigration>

const WRITTEN = {
  things: THINGS,
  more: MORE,
  changed: migration('ALTER TABLE things ADD COLUMN more bigint'),
  zoo: migration('CREATE TABLE zoo (id text)'),
}

/** Of the migrations of `labels`. */
const CHECKSUMS: Readonly<Record<string, readonly string[]>> = {
  sqlite: [
    '7aceb2b69d871fdd5cdb99d4e221cd4dc29481a26d99271a3c66b7825a14bb46',
    'ce527698c11720ada4c44615c666ed2996e9d59f415c3f2cf756b17798da12db',
  ],
  postgres: [
    '35545e7e7fbf17c0c00b7fc344b951d6bc1cab7dc092b8cca162bd63c3644c2b',
    'ce238c9f226f5a98d404bbe1f52a8f3e521ede76b538da41168841647fc1d7d9',
  ],
}

/** A feature without operations, which `labels.ts` stands for on the writer thread. */
const things = (
  migrations: Record<string, FeatureMigration>,
  fields: Partial<AccountFeature> = {},
): AccountFeature => ({
  name: 'labels',
  module: labels.module,
  migrations,
  tables: { things: { owner: 'user_key', key: 'id' } },
  ...fields,
})

await onEnginesOfRun(t, async (t, { name: engine, emptyDatabase, build }) => {
  const open = (url: string, features: readonly AccountFeature[]): Promise<Storage> =>
    engine === 'sqlite'
      ? openSqliteStorage(url.replace('sqlite:', ''), features, pooledWriter)
      : openPostgresStorage(url, 2, features)

  /** Opens the store and closes it again. */
  const start = async (url: string, ...features: readonly AccountFeature[]): Promise<void> =>
    (await open(url, features)).close()

  /** The start fails with this sentence, and changes nothing. */
  const refuses = async (
    t: Test,
    url: string,
    message: RegExp,
    ...features: readonly AccountFeature[]
  ): Promise<void> => {
    const before = await storedRows(url)
    await t.rejects(start(url, ...features), { code: 'FEATURE', message })
    t.equal(await storedRows(url), before, 'nothing is changed')
  }

  const ran = { '0001_things': THINGS, '0002_more': MORE }

  t.test('migrations run once, in the order of their names', async t => {
    const url = await emptyDatabase(t)
    await start(url, things({ '0001_things': THINGS }))
    await start(url, things({ '0002_more': MORE, '0001_things': THINGS }))
    await start(url, things({ '0002_more': MORE, '0001_things': THINGS }))
    await start(url)
  })

  for (const [form, forms] of Object.entries({ 'the query builder': BUILT, 'written statements': WRITTEN }))
    t.test(`a migration that changed, is missing, or comes too late is refused: ${form}`, async t => {
      const url = await emptyDatabase(t)
      const ran = { '0001_things': forms.things, '0002_more': forms.more }
      for (const _ of [1, 2]) await start(url, things(ran))
      const prefix = '^(the database.*: )?The migration'
      const wasChanged = new RegExp(
        `${prefix} 0002_more of the feature labels was changed after it ran\\. Undo the change, and add a migration`,
      )
      const changed = { ...ran, '0002_more': forms.changed }
      await refuses(t, url, wasChanged, things(changed))
      await refuses(t, url, wasChanged, things({ ...changed, '0003_new': forms.more }))
      await refuses(
        t,
        url,
        new RegExp(
          `${prefix} 0002_more of the feature labels has run on this database, but this version does not have it$`,
        ),
        things({ '0001_things': forms.things }),
      )
      await refuses(
        t,
        url,
        new RegExp(
          `${prefix} 0001_zoo of the feature labels is new, but sorts before 0002_more, which has run\\. Rename it$`,
        ),
        things({ ...ran, '0001_zoo': forms.zoo }),
      )
      const table = { owner: 'user_key', key: 'id' }
      await refuses(
        t,
        url,
        /declares the table things with the columns .*, but its migrations do not create them$/,
        things(ran, { tables: { things: { ...table, updatedAt: 'updated_at' } } }),
      )
      await start(url, things(ran))
      await start(url, things({ ...ran, '0003_zoo': forms.zoo }))
      await refuses(t, url, /0003_zoo .* this version does not have it$/, things(ran))
    })

  t.test('a migration that fails leaves nothing, nor do those before it', async t => {
    const url = await emptyDatabase(t)
    await start(url, notes)
    const half: FeatureMigration = {
      async up(db) {
        await sql`CREATE TABLE half (id text)`.execute(db)
        throw new Error('half-way')
      },
    }
    const message = /The migration 0003_half of the feature labels failed: half-way$/
    await refuses(t, url, message, notes, things({ ...ran, '0003_half': half }))
    const wrong = migration('CREATE TABLE things (id text)')
    await refuses(
      t,
      url,
      /The migration 0003_wrong of the feature labels failed: .*already exists/,
      notes,
      things({ ...ran, '0003_wrong': wrong }),
    )
    await start(url, notes, things(ran))
  })

  t.test('a table or column that the migrations do not create is refused', async t => {
    const url = await emptyDatabase(t)
    await start(url)
    const table = { owner: 'user_key', key: 'id' }
    for (const tables of [
      { others: table },
      { things: { ...table, owner: 'owner' } },
      { things: { ...table, updatedAt: 'updated_at' } },
      { things: { ...table, unique: 'name' } },
      { things: { ...table, unique: [['id', 'name']] } },
      { things: { ...table, cleanUp: { column: 'old', after: 1 } } },
    ])
      await refuses(
        t,
        url,
        /The feature labels declares the table \w+ with the columns .*, but its migrations do not create them$/,
        things(ran, { tables }),
      )
  })

  t.test(
    'owner and cleanUp need an index that begins with the column, unique one of its columns',
    async t => {
      const url = await emptyDatabase(t)
      await start(url)
      const table = { owner: 'user_key', key: 'id' }
      const cleanUp = { column: 'at', after: 1 }
      const create = (...indexes: readonly string[]) => ({
        '0001_things': migration(
          'CREATE TABLE things (user_key bigint NOT NULL, id text PRIMARY KEY, at bigint)',
        ),
        ...Object.fromEntries(indexes.map((text, index) => [`000${index + 2}_index`, migration(text)])),
      })
      const noIndex = (column: string, work: string) =>
        new RegExp(
          `The column ${column} of the table things of the feature labels has no index, so ${work} would read the whole table: add a migration`,
        )
      const noUnique = (columns: string) =>
        new RegExp(
          `The table things of the feature labels has no unique index of ${columns}: add a migration that creates it$`,
        )
      const deletion = noIndex('user_key', 'the deletion of a user')
      const byOwner = 'CREATE INDEX one ON things (user_key, at)'
      for (const [message, indexes, declared] of [
        [deletion, [], table],
        [deletion, ['CREATE INDEX one ON things (at, user_key)'], table],
        [deletion, ['CREATE INDEX one ON things (user_key) WHERE at > 1'], table],
        [noIndex('at', 'each clean-up'), [byOwner], { ...table, cleanUp }],
        [noIndex('at', 'each clean-up'), [], { ...table, owner: null, cleanUp }],
        [noUnique('at'), [byOwner, 'CREATE INDEX two ON things (at)'], { ...table, unique: 'at' }],
        [noUnique('at'), [byOwner, 'CREATE UNIQUE INDEX two ON things (at, id)'], { ...table, unique: 'at' }],
        [noUnique('at, id'), [byOwner], { ...table, unique: [['id'], ['at', 'id']] }],
        [
          noUnique('at, id'),
          [byOwner, 'CREATE UNIQUE INDEX two ON things (at)'],
          { ...table, unique: [['at', 'id']] },
        ],
        [
          noUnique('at, id'),
          [byOwner, 'CREATE UNIQUE INDEX two ON things (at, id) WHERE at > 1'],
          { ...table, unique: [['at', 'id']] },
        ],
        [
          noUnique('at, id'),
          [byOwner, 'CREATE UNIQUE INDEX two ON things (at, id, lower(id))'],
          { ...table, unique: [['at', 'id']] },
        ],
      ] as const)
        await refuses(t, url, message, things(create(...indexes), { tables: { things: declared } }))
      const tables = { things: { ...table, cleanUp: { column: 'id', after: 1, firstAt: String } } }
      await start(url, things(create(byOwner), { tables }))
    },
  )

  t.test('a unique index has its columns in any order', async t => {
    const url = await emptyDatabase(t)
    const tables = { things: { owner: 'user_key', key: 'id', unique: [['id'], ['id', 'user_key']] } }
    const index = migration('CREATE UNIQUE INDEX one ON things (user_key, id)')
    await start(url, things({ '0001_things': THINGS, '0002_index': index }, { tables }))
  })

  t.test('a migration may read rows, and use new ids and timestamps', async t => {
    const url = await emptyDatabase(t)
    const storage = await open(url, [])
    await add(storage)
    await storage.close()
    let runs = 0
    const feature = things({
      ...ran,
      '0003_rows': {
        async up(db) {
          const { rows } = await sql<{ key: number }>`SELECT key FROM users`.execute(db)
          const [first] = rows
          // The dry run has no rows.
          if (first === undefined) throw new Error('no user')
          runs += 1
          await sql`INSERT INTO things (id, user_key) VALUES (${`${Date.now()} ${Math.random()}`}, ${first.key})`.execute(
            db,
          )
        },
      },
    })
    for (const _ of [1, 2]) await start(url, feature)
    t.equal(runs, 1)
  })

  t.test('instances that start at once run the migrations once', async t => {
    const url = await emptyDatabase(t)
    const storages = await Promise.all(Array.from({ length: 4 }, () => open(url, [notes, labels])))
    for (const storage of storages) await storage.close()
    t.pass('CREATE TABLE did not fail')
  })

  t.test('a feature that is removed leaves its tables, and continues when it is added again', async t => {
    const url = await emptyDatabase(t)
    await start(url, notes, things(ran))
    const before = await storedRows(url)
    await start(url, notes)
    t.equal(await storedRows(url), before)
    await start(
      url,
      notes,
      things({ ...ran, '0003_zoo': migration('ALTER TABLE things ADD COLUMN zoo text') }),
    )
  })

  // An upgrade of Kysely that compiles a migration differently would stop the service on every database.
  t.test('checksums do not change between versions', async t => {
    const url = await emptyDatabase(t)
    await start(url, labels)
    const checksums = (await storedRows(url)).matchAll(/\b\d{4}_\w+\W+([0-9a-f]{64})\b/g)
    t.strictSame(
      [...checksums].map(([, checksum]) => checksum),
      CHECKSUMS[engine],
    )
  })

  t.test('a service with the name of another one is refused', async t => {
    const options = { env: { DATABASE_URL: await emptyDatabase(t) } }
    const services = { users: () => ({}) }
    await t.rejects(build(t, { ...options, features: [{ ...labels, services }] }), {
      code: 'FEATURE',
      message: 'The service users is declared twice: by the core and by the feature labels',
    })
    await build(t, { ...options, features: [labels] })
  })

  t.test('a service that cannot be created closes the store', async t => {
    const services = {
      labels: () => {
        throw new Error('not today')
      },
    }
    await t.rejects(build(t, { features: [{ ...labels, services }] }), { message: 'not today' })
  })
})
