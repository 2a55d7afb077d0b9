/**
 * URLs of PostgreSQL in the syntax of libpq: several servers (`postgres://user@a:5432,b:5432/db?target_session_attrs=read-write`),
 * sockets (`postgres://user@/db?host=/run/postgresql`), parameters.
 */

const DEFAULT_PORT = '5432'

/** The parameter that selects a server; node-postgres does not support it. */
const ATTRIBUTES = 'target_session_attrs'

export interface Server {
  /** `host:port`, for messages. */
  readonly name: string
  /** The URL of this server only, with the other parameters of the given URL. */
  readonly url: string
}

export interface Servers {
  /** At least one, in the given order. */
  readonly servers: readonly [Server, ...Server[]]
  /** Whether the server must take writes. */
  readonly readWrite: boolean
}

/** An invalid URL. The message never quotes it, as a password that contains a delimiter may appear in any part. */
export class UrlError extends Error {}

/** The message for an invalid DATABASE_URL, without its name. */
export const FORM =
  'must be sqlite:<path of a file> or postgres://<user>:<password>@<host>[:<port>][,<host>[:<port>]…]/<database>'

interface Parameter {
  readonly isValid: RegExp
  /** For the message. */
  readonly must: string
}

const anyText: Parameter = { isValid: /./, must: 'have a value' }

const oneOf = (...values: readonly string[]): Parameter => ({
  isValid: new RegExp(`^(?:${values.join('|')})$`),
  must: `be ${values.join(', ')}`,
})

const file: Parameter = { isValid: /^(?!system$)./, must: 'be the path of a file' }

/** What a connection follows. It would ignore any other parameter, such as a misspelled `sslmode`. */
const PARAMETERS: Readonly<Record<string, Parameter>> = {
  application_name: anyText,
  // `require` cannot be enforced.
  channel_binding: oneOf('disable', 'prefer'),
  client_encoding: { isValid: /^utf-?8$/i, must: 'be UTF8' },
  fallback_application_name: anyText,
  host: {
    isValid: /^[^,]+$/,
    must: 'be one host, or the folder of a socket: write several hosts before the path',
  },
  options: anyText,
  password: anyText,
  port: { isValid: /^\d{1,5}$/, must: 'be a number' },
  ssl: oneOf('true', '1', '0', 'no-verify'),
  sslcert: file,
  sslkey: file,
  sslmode: oneOf('disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'),
  sslnegotiation: oneOf('postgres', 'direct'),
  sslrootcert: file,
  [ATTRIBUTES]: anyText,
  uselibpqcompat: oneOf('true', 'false'),
  user: anyText,
}

/** A part of a password can follow a `?` or a `&` that is not encoded: a name that could be one is not quoted. */
const quotable = (name: string, rest: string): string =>
  /^\w{1,40}$/.test(name) && !rest.includes('@') ? name : 'that it has'

/** @throws {UrlError} if a parameter would be ignored, or not be followed as it is written. */
export const assertParameters = (url: string): void => {
  const query = /\?(.*)$/s.exec(url)?.[1] ?? ''
  for (const [name, value] of new URLSearchParams(query)) {
    const parameter = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined
    if (parameter === undefined)
      throw new UrlError(
        `must not have the parameter ${quotable(name, query)}: it can have ${Object.keys(PARAMETERS).join(', ')}`,
      )
    if (!parameter.isValid.test(value))
      throw new UrlError(`has a parameter ${name} that must ${parameter.must}`)
  }
}

const parametersOf = (rest: string): string[] => {
  const query = /\?([^#]*)/.exec(rest)?.[1] ?? ''
  return query.split('&').filter(parameter => parameter !== '')
}

const has = (parameter: string, name: string): boolean => new URLSearchParams(parameter).has(name)

/** @returns `null` if the parameter is not given. */
const readWriteOf = (parameters: readonly string[]): boolean | null => {
  const given = parameters.filter(parameter => has(parameter, ATTRIBUTES)).at(-1)
  if (given === undefined) return null
  const value = new URLSearchParams(given).get(ATTRIBUTES)
  if (value !== 'any' && value !== 'read-write') throw new UrlError(`${ATTRIBUTES} must be any or read-write`)
  return value === 'read-write'
}

/** @returns the host for messages, also if a parameter names it. */
const nameOf = (host: string, parameters: readonly string[]): string => {
  const given = new URLSearchParams(parameters.find(parameter => has(parameter, 'host'))).get('host')
  return given ?? host.replaceAll(/%2f/gi, '/')
}

const serverOf = (host: string, before: string, after: string): Server => {
  const [, name = '', port = ''] = /^(\[[^\]]+\]|[^:[\]]+)(?::(\d*))?$/.exec(host) ?? []
  if (host === '' || host.startsWith(':')) throw new UrlError('must name a host before and after each comma')
  if (name === '') throw new UrlError('each host must be <name>, <name>:<port> or [<IPv6>]:<port>')
  if (port !== '' && (Number(port) < 1 || Number(port) > 65_535))
    throw new UrlError('each port must be a number from 1 to 65535')
  const address = `${name}:${port || DEFAULT_PORT}`
  const url = `${before}${address}${after}`
  if (!URL.canParse(url)) throw new UrlError(FORM)
  return { name: address, url }
}

/**
 * The servers of a URL. The default of `target_session_attrs` is `any` for one server, `read-write` for several.
 * @throws {UrlError}
 */
export const parseServers = (url: string): Servers => {
  const [, scheme, authority = '', rest = ''] = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/s.exec(url) ?? []
  if (scheme === undefined) throw new UrlError(FORM)
  // As in every URL, the last @ ends the credentials.
  const credentials = authority.slice(0, authority.lastIndexOf('@') + 1)
  const hosts = authority.slice(credentials.length).split(',')
  const parameters = parametersOf(rest)
  const readWrite = readWriteOf(parameters)
  if (hosts.length === 1) {
    const host = hosts[0] ?? ''
    const isOfParameter = host === '' && parameters.some(parameter => has(parameter, 'host'))
    // Only libpq accepts a URL with credentials and without a host (a socket).
    if (!URL.canParse(isOfParameter ? scheme + rest : url)) throw new UrlError(FORM)
    return { servers: [{ name: nameOf(host, parameters), url }], readWrite: readWrite ?? false }
  }
  if (parameters.some(parameter => has(parameter, 'host') || has(parameter, 'port')))
    throw new UrlError('must not have the parameters host and port beside several hosts')
  const kept = parameters.filter(parameter => !has(parameter, ATTRIBUTES)).join('&')
  const path = /^[^?#]*/.exec(rest)?.[0] ?? ''
  const after = kept === '' ? path : `${path}?${kept}`
  const [first = '', ...others] = hosts
  const toServer = (host: string): Server => serverOf(host, scheme + credentials, after)
  return { servers: [toServer(first), ...others.map(toServer)], readWrite: readWrite ?? true }
}
