/** Migrated database files: a copy costs a tenth of the migrations. */
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { schemaOf } from '#core/store/migrations'
import { allFeatures } from '#features/built-in'
import { migrate } from '#storage/sqlite/migrate'

/** Where the header of a database has its stamp (`src/storage/sqlite/file-format.ts`). */
const STAMP = 60

const readMigrated = async (): Promise<Buffer> => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
  const file = join(folder, 'template.db')
  try {
    await migrate(file, schemaOf(allFeatures()))
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

let template: Promise<Buffer> | null = null

/** Creates a database with the schema of the service, and with a stamp of its own. */
export const createMigratedFile = async (file: string): Promise<void> => {
  template ??= readMigrated()
  const content = Buffer.from(await template)
  content.writeInt32BE(randomInt(1, 2 ** 30), STAMP)
  writeFileSync(file, content, { mode: 0o600, flag: 'wx' })
}
