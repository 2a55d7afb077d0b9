/** The rows of users, for both engines. Statements list columns in the order given here. */
import { toFeatureMethods } from '../accounts/sign-in-tables.ts'
import type { UsersTable } from '../store/tables.ts'
import { type Factor, NO_FACTORS } from './factors.ts'
import { compileFields, FIELDS, type FieldColumns, type FieldValues } from './fields.ts'
import type { Position } from './listing.ts'
import { type NewUser, searchKey, type User, type UserChanges } from './user.ts'

/** The row of a new user, with case-folded names. The store assigns `key`; factors are added later. */
export type UserColumns = Omit<UsersTable, 'key' | 'factors'>

/** The columns of fields, each with that of its case-folded text. */
const FIELD_COLUMNS = FIELDS.flatMap(({ column, searchColumn }) =>
  searchColumn === undefined ? [column] : [column, searchColumn],
) as readonly (keyof FieldColumns)[]

export const USER_COLUMNS = [
  'id',
  'email',
  'password_hash',
  'email_verified',
  'disabled',
  'created_at',
  'updated_at',
  'version',
  ...FIELD_COLUMNS,
] as const satisfies readonly (keyof UserColumns)[]

/** Equal for equal factors: statements compare it. */
export const factorsColumn = (factors: readonly Factor[]): string | null =>
  factors.length === 0 ? null : JSON.stringify(factors.toSorted())

export const toFactors = (column: string | null): readonly Factor[] =>
  column === null ? NO_FACTORS : (JSON.parse(column) as Factor[])

const fieldColumns = compileFields<[FieldValues, typeof searchKey], FieldColumns>(
  'user, searchKey',
  ({ field, column, searchColumn }) =>
    `${column}: kinds.${field}.toColumn(kinds.${field}.canonical(user.${field}))${searchColumn === undefined ? '' : `, ${searchColumn}: searchKey(user.${field})`}`,
)

export const userColumns = (user: NewUser): UserColumns => ({
  id: user.id,
  email: user.email,
  password_hash: user.passwordHash,
  email_verified: Number(user.emailVerified),
  disabled: Number(user.disabled),
  created_at: user.createdAt,
  updated_at: user.updatedAt,
  version: 1,
  ...fieldColumns(user, searchKey),
})

export const READ_COLUMNS = [
  'id',
  'email',
  'email_verified',
  'disabled',
  'created_at',
  'updated_at',
  'version',
  ...FIELDS.map(({ column }) => column),
  'factors',
] as const satisfies readonly (keyof UsersTable)[]

/** 0 or 1. */
export const HAS_PASSWORD = 'CASE WHEN password_hash IS NULL THEN 0 ELSE 1 END'

/**
 * A user's columns, for `SELECT` and `RETURNING`. Without a join: better-sqlite3's SQLite (ENABLE_STAT4) plans a join again for every value,
 * which took 20 µs instead of 4.
 */
export const USER_VALUES = `${READ_COLUMNS.join(', ')},
  ${HAS_PASSWORD} AS has_password,
  (SELECT at FROM last_requests WHERE user_key = users.key) AS last_request_at`

export type UserRow = Pick<UsersTable, (typeof READ_COLUMNS)[number]> & {
  has_password: number
  last_request_at: number | null
  /** Present only where the query selects it. */
  feature_methods?: string
}

export type UserRowWithHash = UserRow & Pick<UserColumns, 'password_hash'>

/** A condition on `users` must follow. @param columns further ones. */
export const selectUser = (...columns: readonly string[]): string =>
  `SELECT ${[USER_VALUES, ...columns].join(', ')} FROM users`

const toFields = compileFields<[UserRow], FieldValues>(
  'row',
  ({ field, column }) => `${field}: kinds.${field}.fromColumn(row.${column})`,
)

export const toUser = (row: UserRow): User => ({
  ...toFields(row),
  id: row.id,
  email: row.email,
  emailVerified: row.email_verified === 1,
  hasPassword: row.has_password === 1,
  disabled: row.disabled === 1,
  factors: toFactors(row.factors),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  lastRequestAt: row.last_request_at,
  version: row.version,
})

/** A user as administrators see one, if the row has `feature_methods`. */
export const toListedUser = (row: UserRow): User => {
  const user = toUser(row)
  const { feature_methods: names } = row
  return names === undefined ? user : { ...user, featureMethods: toFeatureMethods(names) }
}

export const toUserWithHash = (row: UserRowWithHash): User & { passwordHash: string | null } => ({
  ...toListedUser(row),
  passwordHash: row.password_hash,
})

export const toCredentials = (row: UserRowWithHash): { user: User; passwordHash: string | null } => ({
  user: toUser(row),
  passwordHash: row.password_hash,
})

const changedFieldColumns = (changes: Partial<FieldValues>): Record<string, string | null> => {
  const columns: Record<string, string | null> = {}
  for (const { field, column, searchColumn, kind } of FIELDS) {
    const value = changes[field]
    if (value === undefined) continue
    columns[column] = kind.toColumn(kind.canonical(value))
    if (searchColumn !== undefined) columns[searchColumn] = searchKey(columns[column] ?? null)
  }
  return columns
}

export const changedColumns = ({
  email,
  emailVerified,
  disabled,
  ...fields
}: UserChanges): Record<string, unknown> => ({
  ...changedFieldColumns(fields),
  ...(email !== undefined && { email }),
  ...(emailVerified !== undefined && { email_verified: Number(emailVerified) }),
  ...(disabled !== undefined && { disabled: Number(disabled) }),
})

/** The position before every user in the order of creation. */
export const START: Position = { key: Number.MIN_SAFE_INTEGER, id: '' }
