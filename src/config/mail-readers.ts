/** The readers of MAIL_URL, MAIL_FROM and PRODUCT_NAME. */
import { type Reader, SettingError } from './readers.ts'

/** Options of nodemailer in the query of the URL. Its logging is excluded: it shows credentials and tokens. */
const OPTIONS = [
  ...['name', 'localAddress', 'requireTLS', 'ignoreTLS', 'authMethod'],
  ...['dnsTimeout', 'connectionTimeout', 'greetingTimeout', 'socketTimeout'],
  ...['maxConnections', 'maxMessages', 'rateLimit', 'rateDelta'],
]

const FLAGS = ['requireTLS', 'ignoreTLS']
const WORDS = ['name', 'localAddress', 'authMethod']

const isOption = (name: string): boolean => OPTIONS.includes(name) || /^tls\.\w+$/.test(name)

/** Checked here because nodemailer ignores numbers and flags that it cannot parse. */
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

/** `smtp://user:password@host:port`, or `smtps:` for TLS from the first byte; or `off`. */
export const mailUrl: Reader<string> = value => {
  if (value === 'off') return value
  const url = /^smtps?:\/\//.test(value) && URL.canParse(value) ? new URL(value) : null
  if (url === null || url.hostname === '')
    throw new SettingError('must be off, smtp://<user>:<password>@<host>:<port> or smtps://…')
  if (![...url.searchParams.keys()].every(isOption))
    throw new SettingError(`can only have these options: ${OPTIONS.join(', ')} and tls.…`)
  const wrong = [...url.searchParams].find(option => !isValue(option))?.[0]
  if (wrong !== undefined) throw new SettingError(`has an option that is not valid: ${wrong}`)
  if (!isEncoded(url)) throw new SettingError('has a user or a password with an unencoded %')
  return value
}

const ADDRESS = String.raw`[^\p{Cc}\s<>()@,;:"\\]+@[^\p{Cc}\s<>()@,;:"\\]+`
const NAME = String.raw`(?:"[^\p{Cc}"\\]*"|[^\p{Cc}<>()@,;:"\\]*)`
const MAILBOX = new RegExp(`^(?:${ADDRESS}|${NAME}\\s*<${ADDRESS}>)$`, 'u')

/** One sender: `Name <address>`, or the address alone. */
export const mailbox: Reader<string> = value => {
  if (!MAILBOX.test(value))
    throw new SettingError('must be one line such as Gatehouse <no-reply@example.com>', value)
  return value
}

const MAX_NAME = 64

/** One line. */
export const productName: Reader<string> = value => {
  if (value.length > MAX_NAME || /\p{Cc}/u.test(value))
    throw new SettingError(`must be one line of at most ${MAX_NAME} characters`, value)
  return value
}
