/** Readers of settings and command line options: each turns text into a typed value, or throws what is wrong with it. */
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { decodeUtf8, EncodingError } from '../text-encoding.ts'

/** @throws {SettingError} */
export type Reader<T> = (text: string) => T

/** Its message follows the name of the setting. */
export class SettingError extends Error {
  /** The invalid value, to be quoted; absent where it is a secret or may contain one. */
  readonly value: string | undefined

  constructor(message: string, value?: string) {
    super(message)
    this.value = value
  }
}

/** The configuration is not valid. Its message lists every error, one line each. */
export class ConfigError extends Error {
  constructor(errors: readonly string[]) {
    super(`The configuration is not valid:\n${errors.map(error => `  ${error}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

export interface Setting {
  /** What the command `settings` prints. */
  readonly description: string
  readonly read: Reader<unknown>
  /** The text of the environment variable; `null`: the value is `null` unless it is given. */
  readonly default: string | null
  /** Whether it can also be named by file, as container platforms mount secrets: `ADMIN_KEY_FILE=/run/secrets/admin-key`. */
  readonly canBeFile?: true
  /** Whether it is a key: a weak one stops the start in production. */
  readonly isKey?: true
  /**
   * What administrators see of the value: all of it, or what a function leaves of its text. Default: only whether it is set, because it may be
   * a secret.
   */
  readonly shown?: true | ((text: string) => string)
}

/** What administrators see of a value; `null` for what may be a secret. */
export const shownOf = ({ shown }: Setting, text: string): string | null => {
  if (shown === undefined) return null
  return shown === true ? text : shown(text)
}

type Value<S extends Setting> = ReturnType<S['read']> | (S['default'] extends null ? null : never)

export type SettingValues<Settings extends Readonly<Record<string, Setting>>> = {
  readonly [Name in keyof Settings]: Value<Settings[Name]>
}

export const text: Reader<string> = value => value

export const integer =
  (min: number, max: number): Reader<number> =>
  value => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < min || number > max)
      throw new SettingError(`must be an integer from ${min} to ${max}`, value)
    return number
  }

/** A number of workers, or `auto` for one per core. */
export const workers: Reader<number> = value =>
  value === 'auto' ? availableParallelism() : integer(1, 256)(value)

export const oneOf = <const T extends string>(...values: T[]): Reader<T> => {
  const allowed: ReadonlySet<string> = new Set(values)
  return value => {
    if (!allowed.has(value)) throw new SettingError(`must be one of ${[...allowed].join(', ')}`, value)
    return value as T
  }
}

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const millisecondsOf = (value: string): number => {
  const match = /^(\d{1,12})(ms|s|m|h|d)?$/.exec(value)
  return match === null ? Number.NaN : Number(match[1]) * (UNITS[match[2] ?? 's'] ?? Number.NaN)
}

/** A span of time such as `30d`, `12h`, `15m`, `90s` or `500ms`; a bare number is seconds. Returns milliseconds. */
export const duration =
  (min: string, max = '3650d'): Reader<number> =>
  value => {
    const milliseconds = millisecondsOf(value)
    if (!(milliseconds >= millisecondsOf(min) && milliseconds <= millisecondsOf(max)))
      throw new SettingError(`must be a time such as 30d, 12h, 15m or 90s, from ${min} to ${max}`, value)
    return milliseconds
  }

/** A secret: at least `min` characters of visible ASCII, which a header carries unchanged. */
export const secret =
  (min: number): Reader<string> =>
  value => {
    if (!/^[\x21-\x7e]+$/.test(value))
      throw new SettingError('must be visible ASCII characters without spaces')
    if (value.length < min) throw new SettingError(`must have at least ${min} characters`)
    return value
  }

export const list = (value: string): string[] =>
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

/** Addresses of trusted proxies. Not `true` nor a hop count, which let a client choose its own address. */
export const networks: Reader<readonly string[]> = value => {
  if (value === 'none') return []
  const wrong = list(value).filter(entry => !isNetwork(entry))
  if (wrong.length > 0) {
    throw new SettingError(
      `must be "none" or addresses, networks (10.0.0.0/8) or ${NAMED_RANGES.join(', ')}`,
      wrong.join(', '),
    )
  }
  return list(value)
}

/** A URL that may be quoted: one without a user, which may come with a password. */
const withoutUser = (url: string): string | undefined => (url.includes('@') ? undefined : url)

/** URL itself would accept `https://*.example.com`, which no browser sends. */
const isOrigin = (entry: string): boolean =>
  URL.canParse(entry) && new URL(entry).origin === entry && !entry.includes('*')

/** Origins such as `https://app.example.com`, without a path. */
export const origins: Reader<readonly string[]> = value => {
  const wrong = list(value).filter(entry => !isOrigin(entry))
  if (wrong.length > 0) {
    throw new SettingError(
      'must be origins such as https://app.example.com, separated by commas',
      withoutUser(wrong.join(', ')),
    )
  }
  return list(value)
}

const httpUrl = (value: string): URL => {
  const url = /^https?:\/\//i.test(value) && URL.canParse(value) ? new URL(value) : null
  if (url === null || url.username !== '' || url.password !== '' || value.includes('#'))
    throw new SettingError(
      'must be a URL such as https://app.example.com, without user and fragment',
      withoutUser(value),
    )
  return url
}

/** @param quoted what errors quote of the value. */
const baseUrl = (value: string, quoted: string | undefined): string => {
  const { origin, pathname, search } = httpUrl(value)
  if (search !== '') throw new SettingError('must be a URL without a query', quoted)
  return origin + pathname.replace(/\/+$/, '')
}

/** The base URL of a service, possibly with a path. Returned without the last slash. */
export const serviceUrl: Reader<string> = value => baseUrl(value, value)

const THIS_MACHINE = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** What may be seen of a URL that can have a token in its path or its query. */
export const originOf = (url: string): string => new URL(url).origin

/**
 * The base URL of a service that others must not overhear: HTTPS, except on this machine. Its path may be a secret. Returned without the last
 * slash.
 */
export const protectedUrl: Reader<string> = value => {
  const url = baseUrl(value, undefined)
  const { protocol, hostname } = new URL(url)
  if (protocol !== 'https:' && !THIS_MACHINE.test(hostname))
    throw new SettingError('must be a URL with https: http is for localhost only', originOf(value))
  return url
}

/**
 * What may be seen of a URL with a user, a password or options: its scheme, hosts and path. Where an unencoded character may have moved a part
 * of the password, it is the scheme alone.
 */
export const withoutCredentials = (url: string): string => {
  const scheme = /^[a-z]+:\/\//i.exec(url)?.[0] ?? ''
  const [, place = '', options = ''] = /^([^?#]*)(.*)$/s.exec(url.slice(scheme.length)) ?? []
  return options.includes('@') ? scheme : scheme + place.slice(place.lastIndexOf('@') + 1)
}

/** The URL of a web page. */
export const pageUrl: Reader<string> = value => httpUrl(value).href

const HSTS_DIRECTIVE = /^(?:max-age=\d{1,10}|includeSubDomains|preload)$/i

/** A value of `Strict-Transport-Security` (RFC 6797 §6.1), or `off`. */
export const hsts: Reader<string> = value => {
  if (value === 'off') return value
  const directives = value.split(';').map(directive => directive.trim())
  const names = directives.map(directive => directive.split('=', 1)[0]?.toLowerCase())
  if (
    !directives.every(directive => HSTS_DIRECTIVE.test(directive)) ||
    !names.includes('max-age') ||
    new Set(names).size < names.length
  )
    throw new SettingError('must be "off" or a value such as max-age=31536000; includeSubDomains', value)
  return directives.join('; ')
}

/**
 * Text that may be quoted because it is a path, and not a secret or a URL in the wrong variable: it begins like a path, or
 * has a folder or an extension in lower case, where a random key has other characters.
 */
const PATH = /^(?:(?:~|\.{1,2}|[A-Za-z]:)?[/\\].*|[a-z0-9._/-]*(?:\/[a-z0-9._-]+|\.[a-z]{1,5}))$/

/** The end of a message about a file: its path, or nothing if it may be a secret. */
export const nameOf = (file: string): string => (PATH.test(file) ? `: ${file}` : '')

/** @returns the text without white space at both ends. @throws {SettingError} */
export const readFile = (file: string): string => {
  try {
    return decodeUtf8(readFileSync(file)).trim()
  } catch (error) {
    if (error instanceof EncodingError)
      throw new SettingError(`names a file that ${error.message}${nameOf(file)}`)
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new SettingError(`names a file that cannot be read${nameOf(file)} (${code})`)
  }
}
