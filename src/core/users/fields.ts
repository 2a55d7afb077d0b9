/**
 * The fields of a user that the service stores and returns, but does not interpret, except for roles and language. Everything follows from an
 * entry of {@link USER_FIELDS}: column and migration, types, requests, responses, OpenAPI, sign-ups, import, export, options of commands.
 * CONTRIBUTING.md has the recipe; `team-fields.ts` has those that a team adds.
 */
import { type FieldDeclaration, type FieldKind, METADATA, nullableText, ROLES, TEXT } from './field-kinds.ts'
import { LOCALE_MAX_LENGTH } from './locale.ts'
import { MAX_ROLES, ROLE_PATTERN } from './roles.ts'
import { TEAM_FIELDS } from './team-fields.ts'

/** Characters are Unicode code points. */
const NAME = { normalize: 'trim', minLength: 1, maxLength: 128, personName: true }

/** The title makes it a component of the OpenAPI document, which `plugins/openapi.ts` fills. The operator's schema is added to `schema`. */
const metadata = (title: string) => ({
  schema: { type: 'object', title },
  // It is sent as it is stored, also if it does not match the operator's schema.
  responseSchema: { type: 'object', title, additionalProperties: true },
})

const CORE_FIELDS = {
  firstName: {
    kind: TEXT,
    column: 'first_name',
    searchColumn: 'first_name_key',
    writtenBy: 'user',
    atSignUp: true,
    inProfile: true,
    ...nullableText(NAME, ['Ann']),
    option: ['--first-name <name>', 'the first name'],
  },
  lastName: {
    kind: TEXT,
    column: 'last_name',
    searchColumn: 'last_name_key',
    writtenBy: 'user',
    atSignUp: true,
    inProfile: true,
    ...nullableText(NAME, ['Lee']),
    option: ['--last-name <name>', 'the last name'],
  },
  locale: {
    kind: TEXT,
    column: 'locale',
    migration: '0012_locale',
    writtenBy: 'user',
    atSignUp: true,
    ...nullableText(
      { normalize: 'locale', maxLength: LOCALE_MAX_LENGTH, languageTag: true },
      ['en-GB'],
      'The language of mails and pages: a tag of BCP 47',
    ),
    option: ['--locale <tag>', 'the language of mails and pages, such as de'],
  },
  roles: {
    kind: ROLES,
    column: 'roles',
    writtenBy: 'administrators',
    adminScope: 'users:identity',
    schema: {
      type: 'array',
      items: { type: 'string', pattern: ROLE_PATTERN, examples: ['editor'] },
      maxItems: MAX_ROLES,
      uniqueItems: true,
    },
    responseSchema: { type: 'array', items: { type: 'string' }, examples: [['editor']] },
    option: ['--role <role>', 'a role; repeat it for several'],
  },
  userMetadata: {
    kind: METADATA,
    column: 'user_metadata',
    writtenBy: 'user',
    ...metadata('UserMetadata'),
    option: ['--user-metadata <json>', 'a JSON object that the user may change'],
  },
  appMetadata: {
    kind: METADATA,
    column: 'app_metadata',
    writtenBy: 'administrators',
    ...metadata('AppMetadata'),
    option: ['--app-metadata <json>', 'a JSON object that only administrators may change'],
  },
} as const satisfies Readonly<Record<string, FieldDeclaration>>

export const USER_FIELDS = { ...CORE_FIELDS, ...TEAM_FIELDS }

type Fields = typeof USER_FIELDS

export type FieldName = keyof Fields

type ValueOf<Name extends FieldName> = Fields[Name]['kind'] extends FieldKind<infer Value> ? Value : never

export type FieldValues = { readonly [Name in FieldName]: ValueOf<Name> }

type FieldWith<Property> = {
  [Name in FieldName]: Fields[Name] extends Property ? Name : never
}[FieldName]

export type OwnField = FieldWith<{ readonly writtenBy: 'user' }>
export type SignUpField = FieldWith<{ readonly atSignUp: true }>
export type ProfileField = FieldWith<{ readonly inProfile: true }>
type SearchField = FieldWith<{ readonly searchColumn: string }>
export type FilterField = FieldWith<{ readonly filter: true }>

export type SignUpFields = Pick<FieldValues, SignUpField>

export type FieldColumn = Fields[FieldName]['column']
type SearchColumn = Fields[SearchField]['searchColumn']

export type FieldColumns = Readonly<Record<FieldColumn, string | null> & Record<SearchColumn, string>>

export const FIELDS: readonly (FieldDeclaration & {
  readonly field: FieldName
  readonly column: FieldColumn
})[] = Object.entries(USER_FIELDS).map(([field, declaration]) => ({
  field: field as FieldName,
  ...declaration,
}))

const fieldsWhere = <Name extends FieldName>(
  isIncluded: (declaration: FieldDeclaration) => boolean,
): readonly Name[] => FIELDS.filter(isIncluded).map(({ field }) => field as Name)

export const FIELD_NAMES = fieldsWhere(() => true)
export const OWN_FIELDS = fieldsWhere<OwnField>(({ writtenBy }) => writtenBy === 'user')
export const SIGN_UP_FIELDS = fieldsWhere<SignUpField>(({ atSignUp }) => atSignUp === true)
export const PROFILE_FIELDS = fieldsWhere<ProfileField>(({ inProfile }) => inProfile === true)

export const FILTERS = FIELDS.filter(({ filter }) => filter === true)

export const filterFieldsIn = (
  given: Readonly<Record<string, unknown>>,
): Readonly<Partial<Record<FilterField, string>>> =>
  Object.fromEntries(
    FILTERS.flatMap(({ field }) => (given[field] === undefined ? [] : [[field, given[field]]])),
  )

export const ADMIN_SCOPES_OF_FIELDS: Readonly<Record<string, string>> = Object.fromEntries(
  FIELDS.flatMap(({ field, adminScope }) => (adminScope === undefined ? [] : [[field, adminScope]])),
)

/**
 * Compiles a function that returns an object, from the text of its properties for each field: a loop over the fields takes three to five
 * times as long, and every row that is read becomes a user. Properties can also use `kinds`, by field.
 */
export const compileFields = <Args extends readonly unknown[], Result>(
  parameters: string,
  propertiesOf: (declaration: (typeof FIELDS)[number], index: number) => string,
  names: readonly FieldName[] = FIELD_NAMES,
): ((...args: Args) => Result) => {
  const kinds = Object.fromEntries(FIELDS.map(({ field, kind }) => [field, kind]))
  const properties = FIELDS.map(propertiesOf).filter((_, index) =>
    names.includes(FIELDS[index]?.field as FieldName),
  )
  return new Function('kinds', `return (${parameters}) => ({ ${properties.join(', ')} })`)(kinds)
}

type Given<Name extends FieldName> = { readonly [Key in Name]?: FieldValues[Key] | undefined }

const newField = ({ field }: { readonly field: FieldName }): string =>
  `${field}: kinds.${field}.canonical(given.${field} ?? kinds.${field}.absent)`

/** What is given, in the form that is stored, and what users have by default. */
export const newFields = compileFields<[given: Given<FieldName>], FieldValues>('given', newField)

export const newSignUpFields = compileFields<[given: Given<SignUpField>], SignUpFields>(
  'given',
  newField,
  SIGN_UP_FIELDS,
)
