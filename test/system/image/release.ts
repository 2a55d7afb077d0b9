/** The databases of 0.2.0 that `npm run record-release` stored. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Recorded } from '../../releases/scenario.ts'
import { ADMIN_KEY, PASSWORD } from '../../support/build.ts'
import { bodyOf, calls, send } from '../instances/http.ts'
import type { Report } from '../instances/report.ts'

const FOLDER = join(import.meta.dirname, '..', '..', 'releases', '0.2.0')

const read = (name: string): Buffer => readFileSync(join(FOLDER, name))

export const sqliteFile = (): Buffer => gunzipSync(read('sqlite.db.gz'))

export const postgresStatements = (): string => read('postgres.sql').toString()

/** Records an error unless the users are those of the database, and one can sign in. */
export const checkUpgrade = async (
  engine: 'sqlite' | 'postgres',
  url: string,
  report: Report,
): Promise<void> => {
  const { users }: Recorded = JSON.parse(read('expected.json').toString())[engine]
  const list = {
    method: 'GET',
    path: '/admin/users?sort=createdAt',
    headers: { 'x-admin-key': ADMIN_KEY },
  } as const
  const { results } = bodyOf(await send(url, list, false))
  try {
    assert.partialDeepStrictEqual(results, users)
  } catch (error) {
    report.failure(`users of 0.2.0 on ${engine}: ${error}`)
  }
  const { status } = await send(url, calls.signIn('ann@example.com', PASSWORD), false)
  report.expect(status === 200, `a user of 0.2.0 on ${engine} cannot sign in: ${status}`)
  report.figure(`users of 0.2.0 after the upgrade on ${engine}`, (results as unknown[]).length)
}
