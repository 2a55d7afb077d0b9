/**
 * Records the databases of the version in package.json, which every later version has to migrate, and the operationIds that it has to
 * keep: `npm run record-release`, before the version is tagged. A recorded version is never recorded again.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import packageJson from '../../../package.json' with { type: 'json' }
import { fill, type Recorded } from '../../releases/scenario.ts'
import { ENCRYPTION_KEY } from '../../support/authenticator-apps.ts'
import { build, type Context, manualClock, temporaryFolder } from '../../support/build.ts'
import { MAILED_SIGN_INS } from '../../support/email-codes.ts'
import { documentOf, operationIds } from '../../support/openapi.ts'
import { createDatabase } from '../../support/postgres.ts'
import { recordRows, recordSchema } from './postgres-dump.ts'

const folder = join(import.meta.dirname, '..', '..', 'releases', packageJson.version)
if (existsSync(folder)) throw new Error(`${folder} is there already`)

const teardowns: (() => unknown)[] = []
const context: Context = { teardown: (run: () => unknown) => void teardowns.push(run) }

/** @returns what the API says of the data, once it is all written. */
const record = async (DATABASE_URL: string): Promise<Recorded> => {
  const clock = manualClock(Date.UTC(2026, 10, 22))
  const app = await build(context, {
    env: { DATABASE_URL, ENCRYPTION_KEY },
    clock: clock.now,
    realHashing: true,
  })
  const recorded = await fill(app, clock)
  await app.close()
  return recorded
}

try {
  const file = join(temporaryFolder(context), 'release.db')
  const sqlite = await record(`sqlite:${file}`)
  const url = await createDatabase(context)
  const schema = await recordSchema(url)
  const postgres = await record(url)
  const statements = [...schema, ...(await recordRows(url))]
  const operations = operationIds(await documentOf(await build(context, { env: MAILED_SIGN_INS })))
  mkdirSync(folder)
  writeFileSync(join(folder, 'sqlite.db.gz'), gzipSync(readFileSync(file)))
  writeFileSync(join(folder, 'postgres.sql'), `${statements.join(';\n')};\n`)
  writeFileSync(join(folder, 'operations.json'), `${JSON.stringify(operations, null, 2)}\n`)
  writeFileSync(join(folder, 'expected.json'), `${JSON.stringify({ sqlite, postgres }, null, 2)}\n`)
} finally {
  for (const run of teardowns.reverse()) await run()
}
