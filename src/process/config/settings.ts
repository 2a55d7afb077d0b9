/** Every setting, declared once. */

import {
  duration,
  hsts,
  integer,
  networks,
  oneOf,
  originOf,
  origins,
  pageUrl,
  protectedUrl,
  type Setting,
  type SettingValues,
  secret,
  serviceUrl,
  text,
  withoutCredentials,
  workers,
} from '#base/settings/readers'
import { ASYMMETRIC_ALGORITHMS } from '#core/auth/private-key'
import { databaseUrl, replicaUrl, shownDatabase } from '#storage/location'
import { brandIcon, brandLogo } from './brand-image.ts'
import {
  allowedOrigins,
  audience,
  cookieDomain,
  hexColor,
  mailbox,
  mailTemplates,
  mailUrl,
  metadataSchema,
  privateKey,
  productName,
  supportUrl,
  textFiles,
} from './core-readers.ts'

const key = (minLength: number, description: string) =>
  ({ read: secret(minLength), default: null, canBeFile: true, isKey: true, description }) as const

export const SETTINGS = {
  HOST: {
    read: text,
    default: '127.0.0.1',
    shown: true,
    description: 'address to listen on; 0.0.0.0 or :: for all',
  },
  PORT: {
    read: integer(0, 65_535),
    default: '3000',
    shown: true,
    description: 'port; 0: the system chooses one, which the log names',
  },
  METRICS_HOST: { read: text, default: '127.0.0.1', shown: true, description: 'address of the metrics' },
  METRICS_PORT: {
    read: integer(0, 65_535),
    default: null,
    shown: true,
    description: 'port of the metrics, as PORT; without it no listener',
  },
  WORKERS: {
    read: workers,
    default: null,
    shown: true,
    description: 'workers that share the port, 1 to 256; auto: one for each core',
  },
  DATABASE_URL: {
    read: databaseUrl,
    default: 'sqlite:data/gatehouse.db',
    canBeFile: true,
    shown: shownDatabase,
    description: 'the database: sqlite:<path> or postgres://<user>:<password>@<host>/<database>',
  },
  DATABASE_READ_URL: {
    read: replicaUrl,
    default: null,
    canBeFile: true,
    shown: withoutCredentials,
    description: 'a replica of the PostgreSQL database, for lists and exports',
  },
  DATABASE_READ_MAX_LAG: {
    read: duration('500ms'),
    default: '1s',
    shown: true,
    description: 'how far the replica may be behind; at least 500ms',
  },
  DATABASE_CONNECTIONS: {
    read: integer(1, 1_000),
    default: '10',
    shown: true,
    description:
      'connections of one process to PostgreSQL, 1 to 1,000, and as many to a replica; one more to each',
  },
  REVOCATION_WAIT: {
    read: oneOf('on', 'off'),
    default: 'on',
    shown: true,
    description:
      'on PostgreSQL, whether revocations are acknowledged when every process follows them; off: others follow within a second',
  },
  ADMIN_KEY: key(
    16,
    'opens all admin routes; at least 16 characters; without it only admin keys with scopes do',
  ),
  ADMIN_KEY_PREVIOUS: key(16, 'an admin key that is still accepted'),
  JWT_ALGORITHM: {
    read: oneOf('HS256', ...ASYMMETRIC_ALGORITHMS),
    default: 'HS256',
    shown: true,
    description: 'what signs access tokens: HS256, EdDSA or ES256',
  },
  JWT_SECRET: key(32, 'the secret of HS256; at least 32 characters'),
  JWT_SECRET_PREVIOUS: key(32, 'a secret whose tokens are still accepted'),
  JWT_PRIVATE_KEY: {
    read: privateKey,
    default: null,
    canBeFile: true,
    description: 'the private key of EdDSA or ES256 in PKCS#8 PEM',
  },
  JWT_PRIVATE_KEY_PREVIOUS: {
    read: privateKey,
    default: null,
    canBeFile: true,
    description: 'a private key of either algorithm whose tokens are still accepted',
  },
  ENCRYPTION_KEY: key(32, 'encrypts secrets that the service reads again; at least 32 characters'),
  ENCRYPTION_KEY_PREVIOUS: key(32, 'a former key; it only decrypts'),
  JWT_AUDIENCE: {
    read: audience,
    default: 'gatehouse',
    shown: true,
    description: 'aud of access tokens: a name or a URL of at most 256 characters',
  },
  JWT_AUDIENCE_PREVIOUS: {
    read: audience,
    default: null,
    shown: true,
    description: 'an audience whose tokens are still accepted',
  },
  NODE_ENV: {
    read: oneOf('development', 'production', 'test'),
    default: 'development',
    shown: true,
    description: 'production, development or test',
  },
  LOG_LEVEL: {
    read: oneOf('info', 'fatal', 'error', 'warn', 'debug', 'trace', 'silent'),
    default: 'info',
    shown: true,
    description: 'fatal, error, warn, info, debug, trace or silent',
  },
  LOG_REQUESTS: {
    read: oneOf('off', 'on'),
    default: 'off',
    shown: true,
    description: 'on: two more log lines for each request',
  },
  SERVER_TIMING: {
    read: oneOf('off', 'on'),
    default: 'off',
    shown: true,
    description: 'on: responses to authenticated requests have Server-Timing',
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    read: serviceUrl,
    default: null,
    shown: originOf,
    description: 'a collector for traces, such as http://127.0.0.1:4318; without it no traces',
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: {
    read: pageUrl,
    default: null,
    shown: originOf,
    description: 'the whole URL for traces, where it is not /v1/traces of the collector',
  },
  TRUST_PROXY: {
    read: networks,
    default: 'none',
    shown: true,
    description: 'proxies whose X-Forwarded-* headers are believed, such as 10.0.0.0/8,loopback',
  },
  ALLOWED_ORIGINS: {
    read: allowedOrigins,
    default: '',
    shown: true,
    description:
      'further origins whose pages may use the cookie and passkeys, and apps that may use passkeys, separated by commas',
  },
  CORS_ORIGINS: {
    read: origins,
    default: '',
    shown: true,
    description: 'origins whose pages may read responses, separated by commas',
  },
  RATE_LIMIT: {
    read: oneOf('on', 'off'),
    default: 'on',
    shown: true,
    description: 'off: no rate limits; for load tests',
  },
  DOCS: {
    read: oneOf('on', 'off'),
    default: 'on',
    shown: true,
    description: 'off: no /docs and no /openapi.json',
  },
  COOKIE_DOMAIN: {
    read: cookieDomain,
    default: null,
    shown: true,
    description:
      'a domain whose hosts all get the cookie of sign-ins, such as example.com for auth.example.com; each can then act as the user',
  },
  SESSION_LIFETIME: {
    read: duration('1s'),
    default: '30d',
    shown: true,
    description: 'a session ends this long after sign-in',
  },
  SESSION_IDLE: {
    read: duration('1s'),
    default: '10d',
    shown: true,
    description: 'a session ends this long after its last request; at most SESSION_LIFETIME',
  },
  LAST_REQUEST_INTERVAL: {
    read: duration('1s', '10m'),
    default: '1s',
    shown: true,
    description: 'how often last requests are written, up to 10m',
  },
  EVENTS_KEPT: {
    read: duration('1d'),
    default: '365d',
    shown: true,
    description: 'how long the audit log keeps an event; at least 1d',
  },
  PASSWORD_MIN_LENGTH: {
    read: integer(8, 128),
    default: '8',
    shown: true,
    description: 'characters of a new password, 8 to 128; use 15 where the password is the only factor',
  },
  BREACHED_PASSWORDS_URL: {
    read: protectedUrl,
    default: null,
    shown: originOf,
    description: 'a range API of breached passwords, with which new ones are compared',
  },
  REQUIRE_EMAIL_VERIFICATION: {
    read: oneOf('false', 'true'),
    default: 'false',
    shown: true,
    description: 'true: an account exists once its e-mail is confirmed',
  },
  USER_METADATA_SCHEMA: {
    read: metadataSchema,
    default: null,
    shown: true,
    description: 'file with a JSON Schema for userMetadata',
  },
  APP_METADATA_SCHEMA: {
    read: metadataSchema,
    default: null,
    shown: true,
    description: 'file with a JSON Schema for appMetadata',
  },
  MAIL_URL: {
    read: mailUrl,
    default: null,
    canBeFile: true,
    shown: withoutCredentials,
    description:
      'the SMTP server, smtp://user:password@host:587 or smtps://…; without it mails become files; off: no mails',
  },
  MAIL_FROM: {
    read: mailbox,
    default: 'Gatehouse <no-reply@localhost>',
    shown: true,
    description: 'sender of mails: Name <address>, or an address',
  },
  PRODUCT_NAME: {
    read: productName,
    default: null,
    shown: true,
    description: 'the name of your product; without it the host of PUBLIC_URL',
  },
  TEXTS: {
    read: textFiles,
    default: null,
    shown: true,
    description:
      'a folder with texts of pages and mails, such as fr.json, which add a language or replace texts',
  },
  MAIL_TEMPLATES: {
    read: mailTemplates,
    default: null,
    shown: true,
    description: 'a folder with mails of your own, such as verification.en.html and verification.en.txt',
  },
  BRAND_COLOR: {
    read: hexColor,
    default: '#2f5bea',
    shown: true,
    description: 'the colour of your brand, #rrggbb: buttons and links of pages, mails and the console',
  },
  BRAND_LOGO: {
    read: brandLogo,
    default: null,
    shown: true,
    description:
      'a file with your logo, SVG or PNG, at most 256 KiB; without it the first letter of the name',
  },
  BRAND_ICON: {
    read: brandIcon,
    default: null,
    shown: true,
    description: 'a file with the icon of the pages, SVG, PNG or ICO, at most 256 KiB',
  },
  PUBLIC_URL: {
    read: serviceUrl,
    default: null,
    shown: true,
    description:
      'URL of the service, for links in mails, iss of EdDSA and ES256 tokens, and passkeys; may have a path; without it http://HOST:PORT',
  },
  HSTS: {
    read: hsts,
    default: null,
    shown: true,
    description:
      'value of Strict-Transport-Security, such as max-age=31536000; includeSubDomains; off: no header',
  },
  WEB_URL: {
    read: pageUrl,
    default: null,
    shown: true,
    description: 'your web application, for passkeys and, with PAGES=off, for links in mails and redirects',
  },
  PAGES: {
    read: oneOf('on', 'off'),
    default: 'on',
    shown: true,
    description: 'off: no hosted pages; mails link to WEB_URL, which has pages of its own',
  },
  RETURN_ORIGINS: {
    read: origins,
    default: '',
    shown: true,
    description:
      'origins of applications to which hosted pages lead back (return_to), separated by commas; that of WEB_URL always is one',
  },
  SIGN_UP_PAGE: {
    read: oneOf('on', 'off'),
    default: 'on',
    shown: true,
    description: 'off: the hosted pages have none to sign up',
  },
  TERMS_URL: {
    read: pageUrl,
    default: null,
    shown: true,
    description: 'your terms of use, to which the page to sign up and the foot of pages link',
  },
  PRIVACY_URL: {
    read: pageUrl,
    default: null,
    shown: true,
    description: 'your privacy policy, linked like TERMS_URL',
  },
  SUPPORT_URL: {
    read: supportUrl,
    default: null,
    shown: true,
    description: 'where users get help: a page, or mailto:',
  },
  CACHE_SIZE: {
    read: integer(1_000, 10_000_000),
    default: null,
    shown: true,
    description: 'tokens that each worker caches, 1,000 to 10,000,000; without it by the memory',
  },
  DRAIN_DELAY: {
    read: duration('0s'),
    default: '1s',
    shown: true,
    description: 'how long a stopping instance keeps serving',
  },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS

/** The names of the settings with a property; `canBeFile`: they can be named by file, with the suffix `_FILE`. */
export const namesWith = (
  property: 'canBeFile' | 'isKey',
  settings: Readonly<Record<string, Setting>> = SETTINGS,
): readonly string[] => Object.keys(settings).filter(name => settings[name]?.[property] === true)

/** The names of environment variables: of the settings, and of those that name a file. */
export const variablesOf = (settings: Readonly<Record<string, Setting>>): readonly string[] => [
  ...Object.keys(settings),
  ...namesWith('canBeFile', settings).map(name => `${name}_FILE`),
]

export type Values = SettingValues<typeof SETTINGS>
