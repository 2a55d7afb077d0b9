/**
 * The factors of users besides the password. A column without a default is added without writing a row. Instances of the previous
 * release do not ask for codes: they must end before the first user enrols.
 */
import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { SchemaDialect } from './schema-dialect.ts'

export const factors = ({ text }: SchemaDialect): Migration => ({
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable('users').addColumn('factors', text).execute()
  },
})
