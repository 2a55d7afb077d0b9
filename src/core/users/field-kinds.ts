/** What the declaration of a user's field consists of, and the kinds of values. */
import { type JsonObject, NO_METADATA } from './metadata.ts'
import { NO_ROLES, sortedRoles } from './roles.ts'

export interface FieldKind<Value> {
  readonly name: 'text' | 'roles' | 'metadata'
  /** The value of users without one. A constant, so that it costs cached users nothing. */
  readonly absent: Value
  /** The value as it is stored and returned. */
  readonly canonical: (value: Value) => Value
  /** `null` for {@link FieldKind.absent}. Equal for equal values: statements compare it. */
  readonly toColumn: (value: Value) => string | null
  readonly fromColumn: (column: string | null) => Value
}

const same = <Value>(value: Value): Value => value

export const TEXT: FieldKind<string | null> = {
  name: 'text',
  absent: null,
  canonical: same,
  toColumn: same,
  fromColumn: same,
}

export const ROLES: FieldKind<readonly string[]> = {
  name: 'roles',
  absent: NO_ROLES,
  canonical: sortedRoles,
  toColumn: roles => (roles.length === 0 ? null : JSON.stringify(roles)),
  fromColumn: column => (column === null ? NO_ROLES : (JSON.parse(column) as string[])),
}

export const METADATA: FieldKind<JsonObject> = {
  name: 'metadata',
  absent: NO_METADATA,
  canonical: same,
  toColumn(metadata) {
    if (metadata === NO_METADATA) return null
    const text = JSON.stringify(metadata)
    return text === '{}' ? null : text
  },
  fromColumn: column => (column === null ? NO_METADATA : (JSON.parse(column) as JsonObject)),
}

export interface FieldDeclaration {
  // biome-ignore lint/suspicious/noExplicitAny: of any kind
  readonly kind: FieldKind<any>
  readonly column: string
  /** Case-folded text, by which users are searched and sorted. */
  readonly searchColumn?: string
  /** The migration that adds the column; never changed. The first fields have none. */
  readonly migration?: `${number}_${string}`
  /** `user`: users themselves, and administrators. */
  readonly writtenBy: 'user' | 'administrators'
  readonly atSignUp?: true
  readonly adminScope?: string
  readonly inProfile?: true
  /** For texts: administrators filter users by it (route, command, console). The index `users_by_<column>` of the column and `id` serves it. */
  readonly filter?: true
  /** JSON Schema, with the keywords of `src/http/validation/keywords.ts`. */
  readonly schema: Readonly<Record<string, unknown>>
  readonly responseSchema: Readonly<Record<string, unknown>>
  /** The option of `users create`: flags and description. */
  readonly option: readonly [flags: string, description: string]
}

export const nullableText = (rules: object, examples: readonly string[], description?: string) => {
  const common = { type: ['string', 'null'], ...(description !== undefined && { description }), examples }
  return { schema: { ...common, ...rules }, responseSchema: common }
}

/** A field that a team adds, beside those of the core. */
export interface TeamField extends Omit<FieldDeclaration, 'migration' | 'searchColumn'> {
  /** The name of the migration that adds the column, and its index with `filter`: `0001_department`. Never changed. */
  readonly ownMigration: `${number}_${string}`
}
