/** The configuration of the service: typed, checked as a whole, frozen. */
import { isIPv6 } from 'node:net'
import { dirname, join } from 'node:path'
import { brandColors } from '#base/brand-colors'
import { ConfigError } from '#base/settings/readers'
import { CURVES } from '#core/auth/private-key'
import {
  encryptionKeyFileOf,
  type PrivateKeySource,
  type SecretSource,
  secretFileOf,
} from '#core/auth/secret-file'
import type { SigningKeySources } from '#core/auth/signing-keys'
import { settingsOf } from '#feature/assembly'
import { assertUnique, checkFeatures } from '#feature/checks'
import type { Feature } from '#feature/declaration'
import type { StorageLocation } from '#storage/location'
import { defaultCacheSize, defaultWorkers, HAS_REUSE_PORT } from './defaults.ts'
import { settingStates } from './listed-settings.ts'
import { misspelledSettings } from './misspelled-settings.ts'
import { type Environment, readSettings, type Settings } from './read-settings.ts'
import { weakness } from './secret-strength.ts'
import { namesWith, SETTINGS, type Values, variablesOf } from './settings.ts'

export type Config = Readonly<ReturnType<typeof loadConfig>>

/** The secret of access tokens. With SQLite, a missing one is generated once and stored beside the data. */
const secretOf = ({ JWT_SECRET, DATABASE_URL }: Partial<Values>): SecretSource | null => {
  if (JWT_SECRET) return { value: JWT_SECRET }
  if (DATABASE_URL?.engine === 'postgres') return null
  return { file: secretFileOf(DATABASE_URL?.file ?? '') }
}

/** The key that encrypts secrets. With SQLite, a missing one is generated once and stored beside the data. */
const encryptionKeyOf = ({ ENCRYPTION_KEY, DATABASE_URL }: Partial<Values>): SecretSource | null => {
  if (ENCRYPTION_KEY) return { value: ENCRYPTION_KEY }
  if (DATABASE_URL?.engine === 'postgres') return null
  return { file: encryptionKeyFileOf(DATABASE_URL?.file ?? '') }
}

/** The keys that encrypt secrets. Commands need no other key. */
export const encryptionKeysOf = (v: Partial<Values>) => ({
  encryptionKey: encryptionKeyOf(v),
  encryptionKeyPrevious: v.ENCRYPTION_KEY_PREVIOUS ?? null,
})

/** The private key of access tokens. With SQLite, a missing one is generated once and stored beside the data. */
const privateKeyOf = ({ JWT_PRIVATE_KEY, DATABASE_URL }: Partial<Values>): PrivateKeySource | null => {
  if (JWT_PRIVATE_KEY) return { value: JWT_PRIVATE_KEY }
  return DATABASE_URL?.engine === 'postgres' ? null : { databaseFile: DATABASE_URL?.file ?? '' }
}

/** `null` if there is no key that could sign. */
const signingKeySources = (v: Values): SigningKeySources | null => {
  const [secret, privateKey, algorithm] = [secretOf(v), privateKeyOf(v), v.JWT_ALGORITHM]
  const [secretPrevious, privateKeyPrevious] = [v.JWT_SECRET_PREVIOUS, v.JWT_PRIVATE_KEY_PREVIOUS]
  const others = { secret, secretPrevious, privateKey, privateKeyPrevious }
  if (algorithm === 'HS256') return secret && { signer: { algorithm, secret }, ...others }
  return privateKey && { signer: { algorithm, privateKey }, ...others }
}

/** A sentence for each key that can be guessed, without the key. */
const weakKeys = ({ values, featureSettings, variables }: Settings, keys: readonly string[]): string[] =>
  keys.flatMap(name => {
    const key = { ...values, ...featureSettings }[name]
    const reason = typeof key === 'string' ? weakness(key) : null
    return reason === null
      ? []
      : [`${variables[name] ?? name} ${reason}: make a key with npm run cli -- keys new`]
  })

/** The sentences whose conditions hold. */
const sentencesOf = (...rules: readonly (readonly [condition: unknown, sentence: string])[]): string[] =>
  rules.flatMap(([condition, sentence]) => (condition ? [sentence] : []))

/** A sentence for each value that is valid, but seldom intended. */
const warningsOf = (v: Values, publicUrl: string, basePath: string): string[] => {
  const hasNoUrl = v.NODE_ENV === 'production' && v.PUBLIC_URL === null
  return sentencesOf(
    [v.ADMIN_KEY === null, 'ADMIN_KEY is not set: admin routes accept only keys with scopes (keys create)'],
    [v.MAIL_URL === 'off', 'MAIL_URL is off: no mails are sent'],
    [
      v.JWT_PRIVATE_KEY !== null && v.JWT_ALGORITHM === 'HS256',
      'JWT_PRIVATE_KEY signs no tokens while JWT_ALGORITHM is HS256: it only verifies',
    ],
    [
      v.RATE_LIMIT === 'off',
      'RATE_LIMIT is off: sign-ups and attempts at passwords and codes are not limited',
    ],
    [hasNoUrl, `PUBLIC_URL is not set: links in mails lead to ${publicUrl}`],
    [
      hasNoUrl && v.JWT_ALGORITHM !== 'HS256',
      `PUBLIC_URL is not set: the issuer of access tokens is ${publicUrl}`,
    ],
    [
      !new URL(publicUrl).pathname.endsWith(basePath),
      `PUBLIC_URL does not end with ${basePath}: links in mails lead to ${publicUrl}`,
    ],
  )
}

const localUrl = (host: string, port: number, basePath: string): string => {
  const isAnyHost = host === '0.0.0.0' || host === '::'
  return `http://${isAnyHost ? 'localhost' : isIPv6(host) ? `[${host}]` : host}:${port}${basePath}`
}

const mailFolderOf = (storage: StorageLocation): string =>
  join(storage.engine === 'sqlite' ? dirname(storage.file) : 'data', 'outbox')

export const mailOf = (v: Values) => ({
  /** The SMTP server, with its credentials; `off`: no mails are sent; `null`: mails become files in `folder`. */
  url: v.MAIL_URL,
  /** The sender: `Name <address>`, or the address alone. */
  from: v.MAIL_FROM,
  /** Created with the first mail. */
  folder: mailFolderOf(v.DATABASE_URL),
  /** Mails of the operator's own; `null` without `MAIL_TEMPLATES`. */
  templates: v.MAIL_TEMPLATES,
})

/** The URL for traces is used as it is; the general one has a path for each signal. */
const tracesUrlOf = ({
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesEndpoint,
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
}: Values): string | null => tracesEndpoint ?? (endpoint === null ? null : `${endpoint}/v1/traces`)

/** Characters of an issuer. Every token then fits into the length that is verified. */
const MAX_ISSUER = 512

const keyContradictionsOf = ({ values: v, variables }: Settings, publicUrl: string): string[] => {
  const { JWT_ALGORITHM: algorithm, JWT_PRIVATE_KEY: privateKey } = v
  if (algorithm === undefined) return []
  if (algorithm === 'HS256')
    return sentencesOf(
      [v.JWT_SECRET_PREVIOUS && !v.JWT_SECRET, 'JWT_SECRET_PREVIOUS has no effect without JWT_SECRET'],
      [
        secretOf(v) === null,
        'JWT_SECRET is needed with PostgreSQL: every instance has to sign with the same one',
      ],
    )
  const given = privateKey?.algorithm ?? algorithm
  return sentencesOf(
    [
      given !== algorithm,
      `${variables.JWT_PRIVATE_KEY} is for ${CURVES[given]}, but JWT_ALGORITHM=${algorithm} needs a key for ${CURVES[algorithm]}`,
    ],
    [
      privateKey === null && privateKeyOf(v) === null,
      `JWT_PRIVATE_KEY is needed with PostgreSQL and JWT_ALGORITHM=${algorithm}: make one with npm run cli -- keys new --algorithm ${algorithm}`,
    ],
    [
      publicUrl.length > MAX_ISSUER,
      `PUBLIC_URL must have at most ${MAX_ISSUER} characters, because access tokens contain it`,
    ],
  )
}

const featureContradictionsOf = (
  { values: v, featureSettings }: Settings,
  features: readonly Feature[],
): string[] => {
  const service = {
    sendsMails: v.MAIL_URL !== 'off',
    encrypts: encryptionKeyOf(v) !== null,
    signsForOthers: v.JWT_ALGORITHM !== 'HS256',
    isEmbedded: v.DATABASE_URL?.engine === 'sqlite',
  }
  return features.flatMap(({ checkSettings }) => checkSettings?.(featureSettings, service) ?? [])
}

const isHttps = ({ PUBLIC_URL }: Values): boolean => PUBLIC_URL?.startsWith('https:') === true

/** A year. Not the subdomains: the service does not know whether they have certificates. */
const DEFAULT_HSTS = 'max-age=31536000'

/** `null`: no header. In development, browsers would remember it for other services of the same host. */
const hstsOf = (v: Values): string | null => {
  const value = v.HSTS ?? (v.NODE_ENV === 'production' ? DEFAULT_HSTS : 'off')
  return value === 'off' || !isHttps(v) ? null : value
}

const isInDomain = (url: string | null, domain: string): boolean =>
  url !== null && `.${new URL(url).hostname}`.endsWith(`.${domain}`)

const contradictionsOf = ({ values: v, variables }: Settings): string[] => {
  const isEmbedded = v.DATABASE_URL?.engine === 'sqlite'
  return sentencesOf(
    [v.ADMIN_KEY_PREVIOUS && !v.ADMIN_KEY, 'ADMIN_KEY_PREVIOUS has no effect without ADMIN_KEY'],
    [
      v.ENCRYPTION_KEY_PREVIOUS && encryptionKeyOf(v) === null,
      'ENCRYPTION_KEY_PREVIOUS has no effect without ENCRYPTION_KEY',
    ],
    [
      v.REQUIRE_EMAIL_VERIFICATION === 'true' && v.MAIL_URL === 'off',
      'MAIL_URL cannot be off with REQUIRE_EMAIL_VERIFICATION: no user could sign in',
    ],
    [
      isEmbedded && v.WORKERS !== null && v.WORKERS > 1 && !HAS_REUSE_PORT,
      `WORKERS can only be 1 with SQLite on ${process.platform}: its threads cannot share a port`,
    ],
    [
      isEmbedded && v.DATABASE_READ_URL,
      `${variables.DATABASE_READ_URL} needs PostgreSQL: SQLite has no replicas, remove it or set DATABASE_URL`,
    ],
    [
      v.HSTS && v.HSTS !== 'off' && !isHttps(v),
      'HSTS needs a PUBLIC_URL with https: browsers ignore it over http',
    ],
    [
      v.COOKIE_DOMAIN && !isInDomain(v.PUBLIC_URL, v.COOKIE_DOMAIN),
      `COOKIE_DOMAIN needs a PUBLIC_URL whose host is ${v.COOKIE_DOMAIN} or below it: browsers refuse cookies for other domains`,
    ],
    [
      variables.SESSION_IDLE && v.SESSION_IDLE > v.SESSION_LIFETIME,
      'SESSION_IDLE must not be longer than SESSION_LIFETIME, at which every session ends',
    ],
  )
}

/** Whether there are several workers by default. Each process on PostgreSQL has its own connections, so their number is a decision. */
const startsWorkers = ({ NODE_ENV, DATABASE_URL }: Values): boolean =>
  NODE_ENV === 'production' && DATABASE_URL.engine === 'sqlite'

const publicUrlOf = (v: Values, basePath: string): string =>
  v.PUBLIC_URL ?? localUrl(v.HOST, v.PORT, basePath)

/**
 * What the service is to its users, and to features. Commands need no other part of the configuration.
 * @param basePath the path below which a host application serves the routes, such as `/auth`.
 */
export const siteOf = (v: Values, basePath = '') => {
  const publicUrl = publicUrlOf(v, basePath)
  const hasPages = v.PAGES === 'on'
  const webUrl = v.WEB_URL ?? publicUrl
  return {
    isProduction: v.NODE_ENV === 'production',
    /** The name of the product in mails: by default the host of `publicUrl`. */
    productName: v.PRODUCT_NAME ?? new URL(publicUrl).host,
    /** The base URL of the API: an origin, possibly with a path, without a slash at the end. */
    publicUrl,
    /** The web application of the users; without `WEB_URL` the service itself. */
    webUrl,
    /** The base URL of the pages behind the links of mails: those of the service, or with `PAGES=off` those of the web application. */
    pagesUrl: hasPages ? publicUrl : webUrl,
    /** Where users manage their account. */
    accountUrl: hasPages ? `${publicUrl}/security` : webUrl,
    /** Whether the service has pages for sign-in, password resets and account security. */
    hasPages,
    /** Whether one of them is for sign-up. */
    hasSignUpPage: hasPages && v.SIGN_UP_PAGE === 'on',
    /** Origins to which pages, and callbacks of providers, lead back. */
    returnOrigins: [...new Set([new URL(publicUrl).origin, new URL(webUrl).origin, ...v.RETURN_ORIGINS])],
    /** The terms that the page for sign-up links to. */
    termsUrl: v.TERMS_URL,
    /** How pages, mails and the console look. */
    brand: {
      colors: brandColors(v.BRAND_COLOR),
      logo: v.BRAND_LOGO,
      icon: v.BRAND_ICON,
      termsUrl: v.TERMS_URL,
      privacyUrl: v.PRIVACY_URL,
      supportUrl: v.SUPPORT_URL,
    },
    /** Further origins whose pages may use the cookie for requests that change something. */
    allowedOrigins: v.ALLOWED_ORIGINS.web,
    /** Origins of apps that may use passkeys. No request has them as its origin. */
    nativeOrigins: v.ALLOWED_ORIGINS.native,
    /** Milliseconds that the audit log keeps an event. */
    eventsKept: v.EVENTS_KEPT,
    /** Milliseconds without a request after which a session ends. A shorter lifetime lowers the default. */
    sessionIdle: Math.min(v.SESSION_IDLE, v.SESSION_LIFETIME),
    /** Whether signing in requires a verified e-mail. Sign-up then does not reveal which addresses have accounts. */
    requireEmailVerification: v.REQUIRE_EMAIL_VERIFICATION === 'true',
  }
}

/**
 * Reads and checks every setting.
 * @param features which are checked first, and whose settings are read too.
 * @param basePath the path below which a host application serves the routes, such as `/auth`.
 * @throws {ConfigError} with all errors; it never contains secrets. {FeatureError} for a declaration that is not valid.
 */
export const loadConfig = (environment: Environment, features: readonly Feature[], basePath = '') => {
  checkFeatures(features)
  assertUnique('setting', variablesOf(SETTINGS), features, ({ settings = {} }) => variablesOf(settings))
  const ofFeatures = settingsOf(features)
  const settings = readSettings(environment, ofFeatures)
  const { values: v, errors } = settings
  const weak = weakKeys(settings, namesWith('isKey', { ...SETTINGS, ...ofFeatures }))
  if (v.NODE_ENV === 'production') errors.push(...weak)
  errors.push(
    ...contradictionsOf(settings),
    ...featureContradictionsOf(settings, features),
    ...keyContradictionsOf(settings, publicUrlOf(v, basePath)),
  )
  const signingKeys = signingKeySources(v)
  if (errors.length > 0 || signingKeys === null) throw new ConfigError(errors)
  const site = siteOf(v, basePath)
  const workers = v.WORKERS ?? (startsWorkers(v) && basePath === '' ? defaultWorkers() : 1)

  return Object.freeze({
    ...site,
    environment: v.NODE_ENV,
    host: v.HOST,
    port: v.PORT,
    /** Where metrics are served; without a port they are not, except by `GET /admin/metrics`. */
    metrics: { host: v.METRICS_HOST, port: v.METRICS_PORT },
    /** Threads (SQLite) or processes (PostgreSQL) that share the port. A host application starts none. */
    workers,
    storage: v.DATABASE_URL,
    /** Serves lists, with the milliseconds by which it may be behind; `null`: the database of `storage` serves them. */
    replica:
      v.DATABASE_READ_URL === null ? null : { url: v.DATABASE_READ_URL, maxLag: v.DATABASE_READ_MAX_LAG },
    /** Connections to PostgreSQL, besides the one that listens for changes. */
    databaseConnections: v.DATABASE_CONNECTIONS,
    waitsForRevocations: v.REVOCATION_WAIT === 'on',
    /** `ADMIN_KEY` and `ADMIN_KEY_PREVIOUS`, if they are set. Empty: only keys of the store are accepted on admin routes. */
    adminKeys: [v.ADMIN_KEY, v.ADMIN_KEY_PREVIOUS].filter(key => key !== null),
    /** The keys of access tokens: settings, or the places of generated ones. */
    signingKeys,
    /** Encrypts secrets that the service reads again: the key or its file, and a former key. `null`: what needs one is not available. */
    ...encryptionKeysOf(v),
    /** `aud` of new access tokens first. Those for the others are still accepted. */
    jwtAudiences: [
      v.JWT_AUDIENCE,
      ...(v.JWT_AUDIENCE_PREVIOUS === null ? [] : [v.JWT_AUDIENCE_PREVIOUS]),
    ] as const,
    logLevel: v.LOG_LEVEL,
    logRequests: v.LOG_REQUESTS === 'on',
    /** Whether responses have `Server-Timing`. */
    hasServerTiming: v.SERVER_TIMING === 'on',
    /** Where spans are sent, by OTLP over HTTP; `null`: there are no traces. */
    tracesUrl: tracesUrlOf(v),
    /** The value of `Strict-Transport-Security`; `null`: no response has it. */
    hsts: hstsOf(v),
    trustedProxies: v.TRUST_PROXY,
    /** Origins whose pages may read responses; with the cookie only those that are allowed origins too. */
    corsOrigins: v.CORS_ORIGINS,
    isRateLimited: v.RATE_LIMIT === 'on',
    /** Whether there are /docs and /openapi.json. */
    hasDocs: v.DOCS === 'on',
    /** The `Domain` of the cookie with the access token; `null`: the host of the service alone gets it. */
    cookieDomain: v.COOKIE_DOMAIN,
    /** Milliseconds until the absolute end of a session. */
    sessionLifetime: v.SESSION_LIFETIME,
    /** Milliseconds between two writes of users' last requests. */
    lastRequestInterval: v.LAST_REQUEST_INTERVAL,
    passwordMinLength: v.PASSWORD_MIN_LENGTH,
    /** A range API of breached passwords, without a slash at the end; `null`: new passwords are not compared with them. */
    breachedPasswordsUrl: v.BREACHED_PASSWORDS_URL,
    /** What metadata must match when it is written. */
    /** Texts of pages and mails that add languages or replace built-in ones; `null` without `TEXTS`. */
    texts: v.TEXTS,
    metadataSchemas: { user: v.USER_METADATA_SCHEMA, app: v.APP_METADATA_SCHEMA },
    mail: mailOf(v),
    /** Tokens that each worker caches. */
    cacheSize: v.CACHE_SIZE ?? defaultCacheSize(workers),
    /** Milliseconds between the stop signal and the time from which new connections are refused. */
    drainDelay: v.DRAIN_DELAY,
    /** The settings of features, by name. */
    featureSettings: settings.featureSettings,
    /** What administrators see of every setting, without secrets. */
    settings: settingStates(features, settings),
    /** Sentences for the operator, about settings that are valid. */
    warnings: [
      ...weak,
      ...misspelledSettings(environment, ofFeatures),
      ...warningsOf(v, site.publicUrl, basePath),
    ],
  })
}
