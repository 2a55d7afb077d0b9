/** The readers that turn the text of an environment variable into a typed value; each throws what is wrong with it. */
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import type { StorageLocation } from '../storage/open.ts'
import { FORM, parseServers, UrlError } from '../storage/postgres/connection-url.ts'

export type Reader<T> = (text: string | undefined) => T

export class SettingError extends Error {
  /** What was given, to be quoted where the configuration is read; absent where it is a secret or may hold one. */
  readonly value: string | undefined

  constructor(message: string, value?: string) {
    super(message)
    this.value = value
  }
}

export const reader =
  <T>(fallback: T, read: (text: string) => T): Reader<T> =>
  text =>
    text === undefined ? fallback : read(text)

export const text = (fallback: string): Reader<string> => reader(fallback, value => value)

export const integer = (fallback: number, min: number, max: number): Reader<number> =>
  reader(fallback, value => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < min || number > max) {
      throw new SettingError(`must be an integer from ${min} to ${max}`, value)
    }
    return number
  })

/** How many processes: a number, or `auto` for one for each core. */
export const workers: Reader<number> = text =>
  text === 'auto' ? availableParallelism() : integer(1, 1, 256)(text)

export const oneOf = <const T extends string>(fallback: T, ...others: T[]): Reader<T> => {
  const allowed: ReadonlySet<string> = new Set([fallback, ...others])
  return reader<T>(fallback, value => {
    if (!allowed.has(value)) throw new SettingError(`must be one of ${[...allowed].join(', ')}`, value)
    return value as T
  })
}

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const TEN_YEARS = 3_650 * 86_400_000

/** A span of time such as `30d`, `12h`, `15m`, `90s` or `500ms`; a bare number is seconds. Gives milliseconds. */
export const duration = (fallback: string, min = '0s'): Reader<number> => {
  const read = (value: string): number => {
    const match = /^(\d{1,12})(ms|s|m|h|d)?$/.exec(value)
    const milliseconds =
      match === null ? Number.NaN : Number(match[1]) * (UNITS[match[2] ?? 's'] ?? Number.NaN)
    const least = min === value ? 0 : read(min)
    if (!(milliseconds >= least && milliseconds <= TEN_YEARS)) {
      throw new SettingError(`must be a time such as 30d, 12h, 15m or 90s, from ${min} to 3650d`, value)
    }
    return milliseconds
  }
  return reader(read(fallback), read)
}

/** A secret of at least `min` bytes of visible ASCII (what a header can carry unchanged), or `null` when not given. */
export const secret = (min: number): Reader<string | null> =>
  reader<string | null>(null, value => {
    if (!/^[\x21-\x7e]+$/.test(value))
      throw new SettingError('must be visible ASCII characters without spaces')
    if (value.length < min) throw new SettingError(`must have at least ${min} characters`)
    return value
  })

const list = (value: string): string[] =>
  value
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '')

const NAMED_RANGES = ['loopback', 'linklocal', 'uniquelocal']

const isNetwork = (entry: string): boolean => {
  if (NAMED_RANGES.includes(entry)) return true
  const [address = '', bits, ...rest] = entry.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** Addresses of trusted proxies. Never `true` nor a hop count: either lets a client choose its own address. */
export const networks: Reader<readonly string[]> = reader<readonly string[]>([], value => {
  if (value === 'none') return []
  const wrong = list(value).filter(entry => !isNetwork(entry))
  if (wrong.length > 0) {
    throw new SettingError(
      `must be "none" or addresses, networks (10.0.0.0/8) or ${NAMED_RANGES.join(', ')}`,
      wrong.join(', '),
    )
  }
  return list(value)
})

/** A URL that may be quoted: one with a user may have a password too. */
export const withoutUser = (url: string): string | undefined => (url.includes('@') ? undefined : url)

const isOrigin = (entry: string): boolean => URL.canParse(entry) && new URL(entry).origin === entry

/** Origins of browsers' pages, `https://app.example.com`, without a path. */
export const origins: Reader<readonly string[]> = reader<readonly string[]>([], value => {
  const wrong = list(value).filter(entry => !isOrigin(entry))
  if (wrong.length > 0) {
    throw new SettingError(
      'must be origins such as https://app.example.com, separated by commas',
      withoutUser(wrong.join(', ')),
    )
  }
  return list(value)
})

/** What a user or a password can have only percent-encoded (RFC 3986 §3.2.1); the others end the part before the host. */
const ENCODED = 'in its user and password, write # as %23, / as %2F, ? as %3F, @ as %40 and % as %25'

/** A `#`, `/`, `?` or `%` in a password makes another URL, which may be a valid one: its host is the user, its port the password. */
const hasUnencodedUser = (value: string): boolean => {
  const rest = value.replace(/^\w+:\/\//, '')
  const [authority = ''] = /^[^/?#]*/.exec(rest) ?? []
  const [path = ''] = /^[^?]*/.exec(rest.slice(authority.length)) ?? []
  const isEndedEarly = path.includes('@') || (path === '' && rest.includes('@') && !authority.includes('@'))
  return isEndedEarly || rest.includes('#') || /%(?![0-9a-f]{2})/i.test(authority)
}

const postgresUrl = (value: string): string => {
  if (hasUnencodedUser(value)) throw new SettingError(`${FORM}; ${ENCODED}`)
  try {
    parseServers(value)
    return value
  } catch (error) {
    if (error instanceof UrlError) throw new SettingError(error.message)
    throw error
  }
}

/** `sqlite:path/to/file.db`, or `postgres://user:password@host/database`, also with several hosts. */
export const database = (fallback: string): Reader<StorageLocation> => {
  const read = (value: string): StorageLocation => {
    if (/^postgres(?:ql)?:\/\//.test(value)) return { engine: 'postgres', url: postgresUrl(value) }
    const file = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(value)?.[1]
    if (file === undefined || file.includes(':memory:')) throw new SettingError(FORM)
    return { engine: 'sqlite', file }
  }
  return reader(read(fallback), read)
}

/** The readers of settings that mails need: where they go, whom they are from, and where their links lead. */

/** Options of nodemailer that a URL can carry. Not its logging, which would show credentials and tokens. */
const OPTIONS = [
  ...['name', 'localAddress', 'requireTLS', 'ignoreTLS', 'authMethod'],
  ...['dnsTimeout', 'connectionTimeout', 'greetingTimeout', 'socketTimeout'],
  ...['maxConnections', 'maxMessages', 'rateLimit', 'rateDelta'],
]

const FLAGS = ['requireTLS', 'ignoreTLS']
const WORDS = ['name', 'localAddress', 'authMethod']

const isOption = (name: string): boolean => OPTIONS.includes(name) || /^tls\.\w+$/.test(name)

/** What nodemailer would take for a number or a flag, without a word where it is none. */
const isValue = ([name, value]: [string, string]): boolean => {
  if (FLAGS.includes(name)) return value === 'true' || value === 'false'
  return !OPTIONS.includes(name) || WORDS.includes(name) || /^\d{1,9}$/.test(value)
}

const isEncoded = ({ username, password }: URL): boolean => {
  try {
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}

/** `smtp://user:password@host:port`, or `smtps:` for TLS from the first byte; or `off`; `null` when not given. */
export const mailUrl: Reader<string | null> = reader<string | null>(null, value => {
  if (value === 'off') return value
  const url = /^smtps?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : null
  if (url === null || url.hostname === '')
    throw new SettingError('must be off, smtp://<user>:<password>@<host>:<port> or smtps://…')
  if (![...url.searchParams.keys()].every(isOption))
    throw new SettingError(`can only have these options: ${OPTIONS.join(', ')} and tls.…`)
  const wrong = [...url.searchParams].find(option => !isValue(option))?.[0]
  if (wrong !== undefined) throw new SettingError(`has an option that is not valid: ${wrong}`)
  if (!isEncoded(url)) throw new SettingError('has a user or a password with a % that is no escape')
  return value
})

const ADDRESS = String.raw`[^\p{Cc}\s<>()@,;:"\\]+@[^\p{Cc}\s<>()@,;:"\\]+`
const NAME = String.raw`(?:"[^\p{Cc}"\\]*"|[^\p{Cc}<>()@,;:"\\]*)`
const MAILBOX = new RegExp(`^(?:${ADDRESS}|${NAME}\\s*<${ADDRESS}>)$`, 'u')

/** One sender: `Name <address>`, or the address alone. */
export const mailbox = (fallback: string): Reader<string> =>
  reader(fallback, value => {
    if (!MAILBOX.test(value))
      throw new SettingError('must be one line such as Gatehouse <no-reply@example.com>', value)
    return value
  })

const httpUrl = (value: string): URL => {
  const url = /^https?:\/\//i.test(value) && URL.canParse(value) ? new URL(value) : null
  if (url === null || url.username !== '' || url.password !== '' || value.includes('#'))
    throw new SettingError(
      'must be a URL such as https://app.example.com, without user and fragment',
      withoutUser(value),
    )
  return url
}

/** Where a service is: an origin, with a path when it shares it. Given without the last slash; `null` when not given. */
export const serviceUrl: Reader<string | null> = reader<string | null>(null, value => {
  const { origin, pathname, search } = httpUrl(value)
  if (search !== '') throw new SettingError('must be a URL without a query', value)
  return origin + pathname.replace(/\/+$/, '')
})

/** A page for people; `null` when not given. */
export const pageUrl: Reader<string | null> = reader<string | null>(null, value => httpUrl(value).href)
