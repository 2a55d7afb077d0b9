/** Fields that a team adds to users, in a copy of the project: their migrations, and filters (CONTRIBUTING.md, "Add a field of the user"). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { TEAM_FIELDS } from '#core/users/team-fields'
import { asAdmin, freshEmail } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { projectTree } from '../support/project-copy.ts'

const FILE = join(import.meta.dirname, '../../src/core/users/fields.ts')

const field = (column: string, migration: string) => `${column}: {
    kind: TEXT,
    column: '${column}',
    ${migration},
    writtenBy: 'administrators',
    ...nullableText({ minLength: 1, maxLength: 64 }, ['Sales']),
    option: ['--${column} <text>', 'the ${column}'],
  },`

const teamFields = (
  ...fields: readonly string[]
): string => `import { nullableText, TEXT, type TeamField } from './field-kinds.ts'
export const TEAM_FIELDS = {
  ${fields.join('\n  ')}
} as const satisfies Readonly<Record<string, TeamField>>
`

/** Behind the last migration of the core's fields. */
const coreFields = (): string =>
  readFileSync(FILE, 'utf8').replace(
    'const CORE_FIELDS = {',
    `$&\n  ${field('city', "migration: '9001_city'")}`,
  )

const DEPARTMENT = field('department', "ownMigration: '0001_department',\n    filter: true")

const DESK = field('desk', "ownMigration: '0002_desk'")

const request = async (app: FastifyInstance, method: 'GET' | 'POST', url: string, payload?: object) =>
  (await app.inject({ method, url, headers: asAdmin, ...(payload && { payload }) })).json()

const names = async (t: Test, app: FastifyInstance, query: string): Promise<readonly string[]> => {
  const page = await request(app, 'GET', `/admin/users?sort=firstName&count=true&${query}`)
  t.equal(page.total, page.results.length)
  return page.results.map(({ firstName }: { firstName: string }) => firstName)
}

await onEnginesOfRun(
  t,
  async (t, { emptyDatabase }) => {
    t.test('a fork with a field merges a field of the core, and adds another one', async t => {
      const env = { DATABASE_URL: await emptyDatabase(t) }
      const before = projectTree(t, { 'src/core/users/team-fields.ts': teamFields(DEPARTMENT) })
      const fork = await before.build(t, { env })
      for (const [firstName, department] of [
        ['Ann', 'Sales'],
        ['Ben', 'sales'],
        ['Cid', 'Sales'],
        ['Dan', null],
      ])
        await request(fork, 'POST', '/admin/users', { email: freshEmail(), firstName, department })
      t.strictSame(await names(t, fork, 'department=Sales'), ['Ann', 'Cid'])
      t.strictSame(await names(t, fork, 'department=Sales&search=c'), ['Cid'])
      t.strictSame(await names(t, fork, 'department=None'), [])
      const invalid = await request(fork, 'GET', '/admin/users?department=')
      t.strictSame(invalid.errors, { department: ['must have at least 1 character'] })
      await fork.close()

      const after = projectTree(t, {
        'src/core/users/fields.ts': coreFields(),
        'src/core/users/team-fields.ts': teamFields(DEPARTMENT, DESK),
      })
      const merged = await after.build(t, { env })
      t.strictSame(await names(t, merged, 'department=Sales'), ['Ann', 'Cid'])
      const values = { department: 'Sales', desk: '7', city: 'Rome' }
      const created = await request(merged, 'POST', '/admin/users', { email: freshEmail(), ...values })
      t.match(created, values)
      t.match(await request(merged, 'GET', `/admin/users/${created.id}`), values)
    })
  },
  Object.keys(TEAM_FIELDS).length > 0 ? { skip: 'the project has fields of its own' } : {},
)
