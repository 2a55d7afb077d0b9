/** API keys over HTTP (docs/design.md, "Machine callers"). */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { userScopesOf } from '#feature/assembly'
import { allFeatures } from '#features/built-in'
import { call } from './account-routes.ts'
import { asAdmin, bearer } from './build.ts'

export interface ApiKeyView {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly scopes: readonly string[]
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
}

export interface CreatedKey {
  readonly token: string
  readonly apiKey: ApiKeyView
}

/** Every scope: what a key has by default. */
export const SCOPES: readonly string[] = Object.keys(userScopesOf(allFeatures()))

/** The form that docs/security.md gives to secret scanners. */
export const API_KEY_FORM = /^gate_pat_[0-9A-Za-z]{49}$/

/** @param token of a session. */
export const postKey = (
  app: FastifyInstance,
  token: string,
  payload: Record<string, unknown> = {},
): Promise<LightMyRequestResponse> =>
  call(app, 'POST', '/account/api-keys', { name: 'a script', ...payload }, bearer(token))

export const createKey = async (
  app: FastifyInstance,
  token: string,
  payload: Record<string, unknown> = {},
): Promise<CreatedKey> => {
  const response = await postKey(app, token, payload)
  if (response.statusCode !== 201) throw new Error(`${response.statusCode}: ${response.body}`)
  return response.json()
}

export const listKeys = async (app: FastifyInstance, token: string): Promise<ApiKeyView[]> =>
  (await call(app, 'GET', '/account/api-keys', undefined, bearer(token))).json().results

export const revokeKey = (app: FastifyInstance, token: string, id: string): Promise<LightMyRequestResponse> =>
  call(app, 'DELETE', `/account/api-keys/${id}`, undefined, bearer(token))

export const adminKeysOf = (app: FastifyInstance, userId: string): Promise<LightMyRequestResponse> =>
  call(app, 'GET', `/admin/users/${userId}/api-keys`, undefined, asAdmin)

export const adminRevoke = (
  app: FastifyInstance,
  userId: string,
  id: string,
): Promise<LightMyRequestResponse> =>
  call(app, 'DELETE', `/admin/users/${userId}/api-keys/${id}`, undefined, asAdmin)

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** CRC-32 (IEEE 802.3) bit by bit, so that it shares no code with the service. */
const crc32 = (text: string): number => {
  let crc = 0xffff_ffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb8_8320 : crc >>> 1
  }
  return (crc ^ 0xffff_ffff) >>> 0
}

/** The last six characters of a key: CRC-32 of all others in base62. */
export const checksum = (text: string): string => {
  let digits = ''
  for (let rest = crc32(text); digits.length < 6; rest = Math.floor(rest / 62))
    digits = DIGITS[rest % 62] + digits
  return digits
}

/** A key of the right form that nobody has. */
export const inventedKey = (prefix = 'gate_pat_', letter = 'x'): string => {
  const unchecked = prefix + letter.repeat(43)
  return unchecked + checksum(unchecked)
}
