/** The readers of settings that mails need: where they go, whom they are from, and where their links lead. */
import { type Reader, reader, SettingError, withoutUser } from './readers.ts'

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
