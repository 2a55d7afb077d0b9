/** Readers of single settings: mails, tokens, origins, metadata. `readers.ts` has those that several settings use. */

import { list, nameOf, origins, pageUrl, type Reader, readFile, SettingError } from '#base/settings/readers'
import { readTextFiles, TextFileError, type TextFiles } from '#base/text-files'
import { type PrivateKey, PrivateKeyError, parsePrivateKey } from '#core/auth/private-key'
import { readTemplateFiles, type TemplateFiles } from '#core/mail/template-files'
import type { MetadataSchema } from '#http/validation/metadata'
import { compileMetadataSchema } from '#http/validation/metadata-schema'

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

export const productName: Reader<string> = value => {
  if (value.length > MAX_NAME || /\p{Cc}/u.test(value))
    throw new SettingError(`must be one line of at most ${MAX_NAME} characters`, value)
  return value
}

/** A page, or a mail address as `mailto:` URL. */
export const supportUrl: Reader<string> = value => {
  if (!/^mailto:/i.test(value)) return pageUrl(value)
  if (!/^mailto:[^\s@?]+@[^\s@?]+$/i.test(value))
    throw new SettingError('must be the URL of a page, or such as mailto:help@example.com', value)
  return value
}

/** A colour as CSS writes it, without transparency. Three digits become six. */
/** Of at least two labels: browsers accept no cookie for a top-level domain. */
const DOMAIN = /^(?=.{1,253}$)(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z](?:[a-z\d-]{0,61}[a-z\d])?$/

export const cookieDomain: Reader<string> = value => {
  const domain = value.toLowerCase()
  if (!DOMAIN.test(domain)) throw new SettingError('must be a domain such as example.com', value)
  return domain
}

export const hexColor: Reader<string> = value => {
  const [, three, six] = /^#(?:([\da-f]{3})|([\da-f]{6}))$/i.exec(value) ?? []
  const digits = six ?? three?.replaceAll(/./g, '$&$&')
  if (digits === undefined) throw new SettingError('must be a colour such as #2f5bea', value)
  return `#${digits.toLowerCase()}`
}

/** PKCS#8 PEM of an Ed25519 or P-256 key. Line breaks may be written as `\n`, because not every platform can set several lines. */
export const privateKey: Reader<PrivateKey> = value => {
  try {
    return parsePrivateKey(value)
  } catch (error) {
    throw error instanceof PrivateKeyError ? new SettingError(error.message) : error
  }
}

/** Origins of apps, which only passkeys have (WebAuthn §5.8.1): their prefix, the form of the rest, and the rule. */
const NATIVE = [
  {
    prefix: 'android:apk-key-hash:',
    // 32 bytes: the last of 43 digits has two bits to spare.
    form: /^[\w-]{42}[AEIMQUYcgkosw048]$/,
    rule: "the SHA-256 of the app's certificate in base64url, which has 43 characters and no =",
  },
  {
    prefix: 'ios:bundle-id:',
    form: /^[a-z\d][a-z\d-]*(?:\.[a-z\d-]+)*$/i,
    rule: 'the bundle id of the app, such as com.example.app',
  },
]

const kindOf = (entry: string) => NATIVE.find(({ prefix }) => entry.startsWith(prefix))

export interface AllowedOrigins {
  readonly web: readonly string[]
  /** Origins of apps, for passkeys alone. */
  readonly native: readonly string[]
}

/** Origins of pages (`https://app.example.com`) and of apps (`android:apk-key-hash:…`, `ios:bundle-id:…`), separated by commas. */
export const allowedOrigins: Reader<AllowedOrigins> = value => {
  const native = list(value).filter(entry => /^(?:android|ios):/i.test(entry))
  for (const entry of native) {
    const kind = kindOf(entry)
    if (kind === undefined)
      throw new SettingError(
        `must have apps as ${NATIVE.map(({ prefix }) => `${prefix}…`).join(' or ')}`,
        entry,
      )
    if (!kind.form.test(entry.slice(kind.prefix.length)))
      throw new SettingError(`must have ${kind.rule}, behind ${kind.prefix}`, entry)
  }
  const web = list(value).filter(entry => !native.includes(entry))
  return { web: origins(web.join(',')), native }
}

const MAX_AUDIENCE = 256

/** A name or a URL (StringOrURI, RFC 7519 §2), which JSON writes unchanged. */
export const audience: Reader<string> = value => {
  if (value.length > MAX_AUDIENCE || !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value))
    throw new SettingError(
      `must be a name such as gatehouse or a URL, of at most ${MAX_AUDIENCE} visible ASCII characters`,
      value,
    )
  return value
}

const parse = (file: string, text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new SettingError(`names a file that is not valid JSON${nameOf(file)}`)
  }
}

export const metadataSchema: Reader<MetadataSchema> = file => {
  const schema = parse(file, readFile(file))
  try {
    return compileMetadataSchema(schema)
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1)
    throw new SettingError(`names a file that is not a JSON Schema (2020-12)${nameOf(file)} (${reason})`)
  }
}

const folderWith =
  <Files>(read: (folder: string) => Files): Reader<Files> =>
  folder => {
    try {
      return read(folder)
    } catch (error) {
      if (error instanceof TextFileError) throw new SettingError(`has a mistake in ${error.message}`)
      throw error
    }
  }

export const textFiles: Reader<TextFiles> = folderWith(readTextFiles)

export const mailTemplates: Reader<TemplateFiles> = folderWith(readTemplateFiles)
