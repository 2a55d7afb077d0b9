/** Tables of features whose rows sign their owners in (`signsIn`), by the settings of the service. */

import { isOwned, type NamedTable, quoted } from '#storage/stored-feature'
import { FACTORS } from '../users/factors.ts'
import type { SignInTable, SignInTables } from '../users/listing.ts'

export interface ConfiguredMethod {
  readonly name: string
  readonly isEnabled: boolean
  /** Which rows of its tables sign in; `null` for all. */
  readonly rows: SignInTable['rows']
}

/** The tables of enabled methods: rows of the others sign nobody in. */
export const signInTablesOf = (
  tables: readonly NamedTable[],
  methods: readonly ConfiguredMethod[],
): SignInTables =>
  tables.filter(isOwned).flatMap(({ name, owner, signsIn }) => {
    const method = methods.find(each => each.isEnabled && each.name === signsIn)
    if (method === undefined || method.rows?.values.length === 0) return []
    return [{ method: method.name, table: { name, owner }, rows: method.rows }]
  })

/** A text in a statement. Only of declarations and settings: what a request sends is a parameter. */
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** A condition: the user has a row. Not `EXISTS`, for which PostgreSQL reads the whole table into a hash, even for a page of few users. */
const hasRow = ({ table: { name, owner }, rows }: SignInTable): string =>
  `(SELECT 1 FROM ${quoted(name)} WHERE ${quoted(owner)} = users.key${
    rows === null ? '' : ` AND ${quoted(rows.column)} IN (${rows.values.map(literal).join(', ')})`
  } LIMIT 1) IS NOT NULL`

const isFactor = (method: string): boolean => (FACTORS as readonly string[]).includes(method)

/**
 * An expression over a row of `users`: the names for `User.featureMethods`, each with a space behind it. Read from the rows, so that it
 * is right whichever release has written them. The text is constant in a service.
 */
export const featureMethods = (tables: SignInTables): string => {
  const byMethod = Map.groupBy(
    tables.filter(({ method }) => !isFactor(method)),
    ({ method }) => method,
  )
  const names = [...byMethod].map(
    ([method, ofMethod]) =>
      `CASE WHEN ${ofMethod.map(hasRow).join(' OR ')} THEN ${literal(`${method} `)} ELSE '' END`,
  )
  return names.length === 0 ? "''" : names.join(' || ')
}

export const featureMethodsColumn = (tables: SignInTables): string =>
  `${featureMethods(tables)} AS feature_methods`

/** Splits the column of {@link featureMethods}: names of methods, each followed by a space. */
export const toFeatureMethods = (column: string): readonly string[] => column.split(' ').slice(0, -1)
