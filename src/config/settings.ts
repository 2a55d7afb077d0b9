/** Every setting, declared once. */
import { ASYMMETRIC_ALGORITHMS } from '../auth/private-key.ts'
import {
  audience,
  databaseUrl,
  mailbox,
  mailUrl,
  metadataSchema,
  privateKey,
  productName,
  replicaUrl,
} from './core-readers.ts'
import {
  duration,
  hsts,
  integer,
  networks,
  oneOf,
  origins,
  pageUrl,
  protectedUrl,
  type Setting,
  type SettingValues,
  secret,
  serviceUrl,
  text,
  workers,
} from './readers.ts'

const key = (minLength: number) =>
  ({ read: secret(minLength), default: null, canBeFile: true, isKey: true }) as const

export const SETTINGS = {
  HOST: { read: text, default: '127.0.0.1' },
  PORT: { read: integer(0, 65_535), default: '3000' },
  METRICS_HOST: { read: text, default: '127.0.0.1' },
  METRICS_PORT: { read: integer(0, 65_535), default: null },
  WORKERS: { read: workers, default: null },
  DATABASE_URL: { read: databaseUrl, default: 'sqlite:data/gatehouse.db', canBeFile: true },
  DATABASE_READ_URL: { read: replicaUrl, default: null, canBeFile: true },
  DATABASE_READ_MAX_LAG: { read: duration('500ms'), default: '1s' },
  DATABASE_CONNECTIONS: { read: integer(1, 1_000), default: '10' },
  ADMIN_KEY: key(16),
  ADMIN_KEY_PREVIOUS: key(16),
  JWT_ALGORITHM: { read: oneOf('HS256', ...ASYMMETRIC_ALGORITHMS), default: 'HS256' },
  JWT_SECRET: key(32),
  JWT_SECRET_PREVIOUS: key(32),
  JWT_PRIVATE_KEY: { read: privateKey, default: null, canBeFile: true },
  JWT_PRIVATE_KEY_PREVIOUS: { read: privateKey, default: null, canBeFile: true },
  ENCRYPTION_KEY: key(32),
  ENCRYPTION_KEY_PREVIOUS: key(32),
  JWT_AUDIENCE: { read: audience, default: 'gatehouse' },
  JWT_AUDIENCE_PREVIOUS: { read: audience, default: null },
  NODE_ENV: { read: oneOf('development', 'production', 'test'), default: 'development' },
  LOG_LEVEL: { read: oneOf('info', 'fatal', 'error', 'warn', 'debug', 'trace', 'silent'), default: 'info' },
  LOG_REQUESTS: { read: oneOf('off', 'on'), default: 'off' },
  SERVER_TIMING: { read: oneOf('off', 'on'), default: 'off' },
  OTEL_EXPORTER_OTLP_ENDPOINT: { read: serviceUrl, default: null },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: { read: pageUrl, default: null },
  TRUST_PROXY: { read: networks, default: 'none' },
  ALLOWED_ORIGINS: { read: origins, default: '' },
  CORS_ORIGINS: { read: origins, default: '' },
  RATE_LIMIT: { read: oneOf('on', 'off'), default: 'on' },
  DOCS: { read: oneOf('on', 'off'), default: 'on' },
  SESSION_LIFETIME: { read: duration('1s'), default: '30d' },
  SESSION_IDLE: { read: duration('1s'), default: '10d' },
  LAST_REQUEST_INTERVAL: { read: duration('1s', '10m'), default: '1s' },
  EVENTS_KEPT: { read: duration('1d'), default: '365d' },
  PASSWORD_MIN_LENGTH: { read: integer(8, 128), default: '8' },
  BREACHED_PASSWORDS_URL: { read: protectedUrl, default: null },
  REQUIRE_EMAIL_VERIFICATION: { read: oneOf('false', 'true'), default: 'false' },
  USER_METADATA_SCHEMA: { read: metadataSchema, default: null },
  APP_METADATA_SCHEMA: { read: metadataSchema, default: null },
  MAIL_URL: { read: mailUrl, default: null, canBeFile: true },
  MAIL_FROM: { read: mailbox, default: 'Gatehouse <no-reply@localhost>' },
  PRODUCT_NAME: { read: productName, default: null },
  PUBLIC_URL: { read: serviceUrl, default: null },
  HSTS: { read: hsts, default: null },
  WEB_URL: { read: pageUrl, default: null },
  SIGN_UP_PAGE: { read: oneOf('on', 'off'), default: 'on' },
  TERMS_URL: { read: pageUrl, default: null },
  CACHE_SIZE: { read: integer(1_000, 10_000_000), default: null },
  WARM_UP: { read: oneOf('off', 'on'), default: 'off' },
  DRAIN_DELAY: { read: duration('0s'), default: '1s' },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS

/** The names of the settings with a property; `canBeFile`: they can be named by file, with the suffix `_FILE`. */
export const namesWith = (
  property: 'canBeFile' | 'isKey',
  settings: Readonly<Record<string, Setting>> = SETTINGS,
): readonly string[] => Object.keys(settings).filter(name => settings[name]?.[property] === true)

export type Values = SettingValues<typeof SETTINGS>
