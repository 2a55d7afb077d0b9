/** Time-based one-time passwords (RFC 6238): SHA-1, six digits, steps of 30 seconds, as every authenticator app supports them. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** Bytes: the length of the hash (RFC 4226 §4, R6). */
const SECRET_LENGTH = 20

/** Milliseconds. */
const STEP = 30_000

const DIGITS = 6

/** Steps before and after the current one that are accepted, for clocks that differ and for the time of typing (RFC 6238 §5.2). */
const TOLERANCE = 1

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** RFC 4648 §6, without padding. */
export const toBase32 = (bytes: Uint8Array): string => {
  let [text, bits, buffered] = ['', 0, 0]
  for (const byte of bytes) {
    buffered = (buffered << 8) | byte
    bits += 8
    for (; bits >= 5; bits -= 5) text += BASE32[(buffered >>> (bits - 5)) & 31]
    buffered &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + BASE32[(buffered << (5 - bits)) & 31]
}

/** @throws {TypeError} for other characters than those of {@link toBase32}. */
export const fromBase32 = (text: string): Buffer => {
  const bytes = []
  let [bits, buffered] = [0, 0]
  for (const character of text) {
    const value = BASE32.indexOf(character)
    if (value < 0) throw new TypeError('The text is not base32')
    buffered = (buffered << 5) | value
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push(buffered >>> bits)
    buffered &= (1 << bits) - 1
  }
  return Buffer.from(bytes)
}

/**
 * Bytes of secrets that other services have made. Many have 80 bits, below the 128 of RFC 4226 §4: refused, their users would lose the
 * second factor. HMAC-SHA-1 hashes keys of more than 64 bytes first (RFC 2104 §2), so longer ones are no stronger.
 */
const IMPORTED_LENGTHS = { min: 10, max: 64 }

/** Characters in the last group of base32 for one to four bytes, or none (RFC 4648 §6). */
const LAST_GROUPS: ReadonlySet<number> = new Set([0, 2, 4, 5, 7])

/**
 * @param text in upper case, without padding.
 * @returns the errors of a secret of another service: at most one message.
 */
export const secretViolations = (text: string): string[] => {
  const { min, max } = IMPORTED_LENGTHS
  if (!/^[A-Z2-7]*$/.test(text) || !LAST_GROUPS.has(text.length % 8)) return ['must be base32 (RFC 4648)']
  const length = Math.floor((text.length * 5) / 8)
  return length >= min && length <= max ? [] : [`must be base32 of ${min} to ${max} bytes`]
}

/** @returns base32 of 160 random bits. */
export const newTotpSecret = (): string => toBase32(randomBytes(SECRET_LENGTH))

/** The number of the step at a time (milliseconds since the epoch). */
export const stepAt = (time: number): number => Math.floor(time / STEP)

/** The code of a step: RFC 4226 §5.3. */
export const codeOf = (secret: Uint8Array, step: number): string => {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const digest = createHmac('sha1', secret).update(counter).digest()
  const offset = (digest.at(-1) ?? 0) & 15
  const number = digest.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0')
}

/**
 * The step whose code was presented, of those that are accepted now.
 * @param code six digits; spaces are ignored, as apps show them.
 * @param time milliseconds since the epoch.
 * @param lastStep the last one that was accepted: it and earlier ones are not accepted again.
 * @returns `null` if the code is wrong. Every accepted step is compared, so the time does not depend on the code.
 */
export const acceptedStep = (secret: string, code: string, time: number, lastStep: number): number | null => {
  const presented = Buffer.from(code.replaceAll(' ', ''))
  const bytes = fromBase32(secret)
  const current = stepAt(time)
  let accepted: number | null = null
  for (let step = current - TOLERANCE; step <= current + TOLERANCE; step += 1) {
    const expected = Buffer.from(codeOf(bytes, step))
    const isEqual = expected.length === presented.length && timingSafeEqual(expected, presented)
    if (isEqual && step > lastStep && accepted === null) accepted = step
  }
  return accepted
}

/**
 * What authenticator apps read: the Key URI Format.
 * @param issuer the name of the service, which the app shows beside the account.
 */
export const totpUri = (secret: string, issuer: string, account: string): string => {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}&algorithm=SHA1&digits=${DIGITS}&period=${STEP / 1_000}`
}
