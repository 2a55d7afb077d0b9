/**
 * Refresh tokens: the id of a grant, a generation, and an HMAC of both by the secret of the grant. There is no row each, and a token whose
 * response was lost can be made again.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const PREFIX = 'gate_ort_'

/** Bytes. */
const ID = 16
const GENERATION = 4
const MAC = 32

export interface PresentedRefreshToken {
  readonly grantId: string
  readonly generation: number
  readonly signed: Buffer
  readonly mac: Buffer
}

export const newGrantSecret = (): string => randomBytes(MAC).toString('base64url')

const macOf = (secret: string, signed: Buffer): Buffer =>
  createHmac('sha256', Buffer.from(secret, 'base64url')).update(signed).digest()

export const isRefreshToken = (text: string): boolean => text.startsWith(PREFIX)

export const refreshTokenOf = (grantId: string, generation: number, secret: string): string => {
  const signed = Buffer.alloc(ID + GENERATION)
  signed.write(grantId.replaceAll('-', ''), 'hex')
  signed.writeUInt32BE(generation, ID)
  return PREFIX + Buffer.concat([signed, macOf(secret, signed)]).toString('base64url')
}

/** @returns `null` if it has not the form of one; whether it is authentic, {@link isAuthentic} says. */
export const readRefreshToken = (text: string): PresentedRefreshToken | null => {
  const encoded = text.slice(PREFIX.length)
  const bytes = Buffer.from(encoded, 'base64url')
  if (!isRefreshToken(text) || bytes.length !== ID + GENERATION + MAC) return null
  if (bytes.toString('base64url') !== encoded) return null
  const hex = bytes.toString('hex', 0, ID)
  const grantId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return {
    grantId,
    generation: bytes.readUInt32BE(ID),
    signed: bytes.subarray(0, ID + GENERATION),
    mac: bytes.subarray(ID + GENERATION),
  }
}

export const isAuthentic = ({ signed, mac }: PresentedRefreshToken, secret: string): boolean =>
  timingSafeEqual(mac, macOf(secret, signed))
