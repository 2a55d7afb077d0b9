/** Where a store is: the forms of DATABASE_URL and DATABASE_READ_URL. */
import { type Reader, SettingError, withoutCredentials } from '#base/settings/readers'
import { assertParameters, FORM, parseServers, UrlError } from './postgres/connection-url.ts'

/** Where data is stored: in a local file, or in a database that instances share. */
export type StorageLocation =
  | { readonly engine: 'sqlite'; readonly file: string }
  | { readonly engine: 'postgres'; readonly url: string }

/** Characters that end the user and password of a URL unless they are percent-encoded (RFC 3986 §3.2.1). */
const ENCODED = 'in its user and password, write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25'

/** An unencoded `#`, `/`, `?` or `%` in a password can form another valid URL, whose host is the user and whose port the password. */
const hasUnencodedUser = (value: string): boolean => {
  const rest = value.replace(/^\w+:\/\//, '')
  const [authority = ''] = /^[^/?#]*/.exec(rest) ?? []
  const [path = ''] = /^[^?]*/.exec(rest.slice(authority.length)) ?? []
  const isEndedEarly = path.includes('@') || (path === '' && rest.includes('@') && !authority.includes('@'))
  return isEndedEarly || rest.includes('#') || /%(?![0-9a-f]{2})/i.test(authority)
}

const REPLICA_FORM =
  'must be postgres://<user>:<password>@<host>[:<port>][,<host>[:<port>]…]/<database>: only PostgreSQL has replicas'

const postgresUrl = (value: string): string => {
  if (hasUnencodedUser(value)) throw new SettingError(`${FORM}; ${ENCODED}`)
  try {
    parseServers(value)
    assertParameters(value)
    return value
  } catch (error) {
    if (error instanceof UrlError) throw new SettingError(error.message)
    throw error
  }
}

/** `sqlite:path/to/file.db`, or `postgres://user:password@host/database`, also with several hosts. */
export const databaseUrl: Reader<StorageLocation> = value => {
  if (/^postgres(?:ql)?:\/\//.test(value)) return { engine: 'postgres', url: postgresUrl(value) }
  const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(value)?.[1]
  if (file === undefined || file.includes(':memory:')) throw new SettingError(FORM)
  return { engine: 'sqlite', file }
}

/** What may be seen of a database: the file, or the hosts and the name. */
export const shownDatabase = (url: string): string =>
  url.startsWith('sqlite:') ? url : withoutCredentials(url)

/** `postgres://user:password@host/database`, also with several hosts. @returns the URL. */
export const replicaUrl: Reader<string> = value => {
  if (!/^postgres(?:ql)?:\/\//.test(value)) throw new SettingError(REPLICA_FORM)
  if (/[?&]target_session_attrs=/.test(value))
    throw new SettingError('must not have the parameter target_session_attrs')
  return postgresUrl(value)
}
