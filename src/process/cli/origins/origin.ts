/** What the import knows of another system: which file it exports, and what a user in it means here. */
import type { FieldErrors } from '#base/errors'

/** A user of an export, as parsed. Nothing about it is known yet. */
// biome-ignore lint/suspicious/noExplicitAny: each origin reads what may be there
export type Foreign = Record<string, any>

/** A user as a line of an import, which the schema of the API checks. */
export interface MappedUser {
  readonly user: Readonly<Record<string, unknown>>
  /** What the user has there and does not get here, such as "phone numbers". Counted, and reported at the end. */
  readonly leftOut: readonly string[]
}

/** Further files of an export, as read before the users. */
export interface OriginFiles {
  /** The password hash of a user, from `--hashes`. */
  readonly hashOf: (id: string) => string | undefined
  /** The content of `--hash-parameters`; `null` without it. */
  readonly parameters: string | null
}

export interface Origin {
  /** The system, as people write it. */
  readonly title: string
  /** The property of a JSON document that has the list of users. Default: the document is the list, or each line is a user. */
  readonly listIn?: string
  /** A user of `--hashes`. Default: there is no such file. @returns `null` without a password. */
  readonly hashIn?: (entry: Foreign) => readonly [id: string, hash: string] | null
  /** Whether `--hash-parameters` is needed for users with a password. */
  readonly needsParameters?: true
  /** Called once, before the users. @throws {OriginError} if `--hash-parameters` is wrong. @returns what maps a user, or says what is wrong with it. */
  readonly mapper: (files: OriginFiles) => (user: Foreign) => MappedUser | { readonly errors: FieldErrors }
}

/** A file that is not one of the origin. The message is a sentence for the operator. */
export class OriginError extends Error {}

/** A text that is not blank. */
export const textOf = (value: unknown): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''
  return text === '' ? undefined : text
}

/** As JSON, CSV of databases and spreadsheets write it. */
export const isTrue = (value: unknown): boolean =>
  value === true || value === 1 || (typeof value === 'string' && /^(?:true|t|1|yes)$/i.test(value.trim()))

const SECONDS = 100_000_000_000

/** ISO 8601, of what PostgreSQL, MySQL, .NET and JavaScript write, and of seconds or milliseconds. Without a zone it is UTC. */
export const timeOf = (value: unknown): string | undefined => {
  const text = textOf(value)
  if (text === undefined) return undefined
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const number = Number(text)
    const date = new Date(number < SECONDS ? number * 1_000 : number)
    return Number.isNaN(date.getTime()) || number === 0 ? undefined : date.toISOString()
  }
  const match = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|[+-]\d\d(?::?\d\d)?)?$/i.exec(text)
  if (match === null) return undefined
  const [, day = '', clock = '', zone = 'Z'] = match
  const offset = /^[+-]\d\d$/.test(zone)
    ? `${zone}:00`
    : zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2').toUpperCase()
  const date = new Date(`${day}T${clock.replace(/(\.\d{3})\d+$/, '$1')}${offset}`)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/** PHC strings have base64 without padding. */
export const unpadded = (base64: string): string => base64.replace(/=+$/, '')

/** A JSON object, also as text in a column. */
export const objectOf = (value: unknown): Foreign | undefined => {
  let parsed = value
  if (typeof value === 'string') {
    try {
      parsed = JSON.parse(value)
    } catch {
      return undefined
    }
  }
  return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)
    ? (parsed as Foreign)
    : undefined
}

export const listOf = (value: unknown): readonly Foreign[] =>
  Array.isArray(value) ? value.filter(each => typeof each === 'object' && each !== null) : []

/** The first name is the first word. */
export const namesOf = (name: unknown): { readonly firstName?: string; readonly lastName?: string } => {
  const [firstName, ...rest] = (textOf(name) ?? '').split(/\s+/)
  const lastName = rest.join(' ')
  return { ...(firstName && { firstName }), ...(lastName && { lastName }) }
}

/** Ids of this service are UUIDs; another id is kept in `appMetadata`, by which other tables find the user. */
const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

export interface Known {
  /** The id there. */
  readonly id?: unknown
  readonly email: unknown
  readonly emailVerified?: boolean
  readonly disabled?: boolean
  readonly passwordHash?: string | undefined
  readonly firstName?: unknown
  readonly lastName?: unknown
  readonly locale?: unknown
  readonly roles?: readonly string[]
  readonly userMetadata?: Foreign | undefined
  readonly appMetadata?: Foreign | undefined
  readonly createdAt?: unknown
  readonly updatedAt?: unknown
  readonly lastRequestAt?: unknown
  readonly identities?: readonly Foreign[]
  readonly totpSecret?: string | undefined
  /** Whether the user has a second step there whose secret the export lacks. */
  readonly lacksSecondStep?: boolean
}

const ROLE = /^[\w.:-]{1,64}$/

const present = (fields: Foreign): Foreign =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''))

/**
 * A line of an import. A user whose second step does not come along gets no password: it alone would sign in.
 * @param leftOut names of what the user has there, each with whether it is so.
 */
export const mapped = (known: Known, leftOut: Readonly<Record<string, unknown>> = {}): MappedUser => {
  const { id, identities = [], totpSecret, lacksSecondStep = false, roles = [] } = known
  const foreignId = textOf(id)
  const isUuid = foreignId !== undefined && UUID.test(foreignId)
  const appMetadata = {
    ...known.appMetadata,
    ...(foreignId !== undefined && !isUuid && { importedId: foreignId }),
  }
  const credentials = {
    ...(identities.length > 0 && { identities }),
    ...(totpSecret !== undefined && { totpSecret }),
  }
  const hasPassword = known.passwordHash !== undefined
  const kept = roles.filter(role => ROLE.test(role))
  const missing = {
    ...leftOut,
    'passwords of users whose second step is not in the export': hasPassword && lacksSecondStep,
    'roles whose names are not possible': kept.length < roles.length,
  }
  return {
    user: present({
      email: typeof known.email === 'string' ? known.email.trim() : known.email,
      ...(isUuid && { id: foreignId }),
      emailVerified: known.emailVerified,
      ...(known.disabled === true && { disabled: true }),
      ...(!lacksSecondStep && { passwordHash: known.passwordHash }),
      firstName: textOf(known.firstName),
      lastName: textOf(known.lastName),
      locale: textOf(known.locale)?.replaceAll('_', '-'),
      ...(kept.length > 0 && { roles: [...new Set(kept)] }),
      ...(known.userMetadata &&
        Object.keys(known.userMetadata).length > 0 && { userMetadata: known.userMetadata }),
      ...(Object.keys(appMetadata).length > 0 && { appMetadata }),
      createdAt: timeOf(known.createdAt),
      updatedAt: timeOf(known.updatedAt),
      lastRequestAt: timeOf(known.lastRequestAt),
      ...(Object.keys(credentials).length > 0 && { credentials }),
    }),
    leftOut: Object.entries(missing).flatMap(([name, has]) => (has ? [name] : [])),
  }
}

/** Providers whose issuer is the same for everybody, by the names that other systems have for them. */
const ISSUERS: Readonly<Record<string, readonly [provider: string, issuer: string]>> = {
  google: ['google', 'https://accounts.google.com'],
  'google.com': ['google', 'https://accounts.google.com'],
  'google-oauth2': ['google', 'https://accounts.google.com'],
  oauth_google: ['google', 'https://accounts.google.com'],
  apple: ['apple', 'https://appleid.apple.com'],
  'apple.com': ['apple', 'https://appleid.apple.com'],
  github: ['github', 'https://github.com/login/oauth'],
  'github.com': ['github', 'https://github.com/login/oauth'],
}

/** An identity here; `null` for a provider whose issuer is not known. */
export const identityOf = (name: unknown, subject: unknown, email?: unknown): Foreign | null => {
  const [provider, issuer] = ISSUERS[textOf(name)?.toLowerCase() ?? ''] ?? []
  const id = textOf(subject)
  if (provider === undefined || id === undefined) return null
  const address = textOf(email)?.toLowerCase()
  return { provider, issuer, subject: id, ...(address !== undefined && { email: address }) }
}
