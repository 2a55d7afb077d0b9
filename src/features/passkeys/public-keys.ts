/** Public keys of passkeys. Import this module on demand, as `web-authn.ts`. */
import {
  COSEALG,
  cose,
  decodeCredentialPublicKey,
  isoBase64URL,
  isoCBOR,
  verifySignature,
} from '@simplewebauthn/server/helpers'
import { MAX_PUBLIC_KEY } from './stored-passkeys.ts'

interface KeyForm {
  readonly type: number
  /** `null` for RSA. */
  readonly curve: number | null
  /** How many parameters the key has. There may be no others (WebAuthn §6.5.1), such as those of a private key. */
  readonly parameters: number
}

const { COSECRV, COSEKEYS, COSEKTY } = cose

/** The form of a public key by algorithm: RFC 9053 §7, with the curves of WebAuthn §5.8.5. */
const KEY_FORMS: ReadonlyMap<number, KeyForm> = new Map([
  [COSEALG.EdDSA, { type: COSEKTY.OKP, curve: COSECRV.ED25519, parameters: 4 }],
  [COSEALG.ES256, { type: COSEKTY.EC2, curve: COSECRV.P256, parameters: 5 }],
  [COSEALG.RS256, { type: COSEKTY.RSA, curve: null, parameters: 4 }],
])

/**
 * Algorithms of new passkeys, the preferred one first. The library would ask for ML-DSA too where Node has it, and such a passkey would
 * fail on an instance without.
 */
export const ALGORITHMS = [...KEY_FORMS.keys()]

/** RFC 8812 §2. */
const MIN_RSA_BYTES = 256

/** Bytes of an exponent. OpenSSL accepts longer ones for keys up to 3,072 bits, but then verifies signatures slowly. */
const MAX_EXPONENT = 8

/** What importing an RSA key does not check. @throws {Error} */
const assertRsaKey = (modulus: unknown, exponent: unknown): void => {
  if (!(modulus instanceof Uint8Array && exponent instanceof Uint8Array))
    throw new Error('The public key has no numbers')
  // Without zeros in front (RFC 8230 §4).
  const isOdd = (number: Uint8Array): boolean => number[0] !== 0 && ((number.at(-1) ?? 0) & 1) === 1
  if (modulus.length < MIN_RSA_BYTES || !isOdd(modulus))
    throw new Error('The modulus is not one of RSA, or too short')
  // With the exponent 1, the signature of a message is the padded message.
  if (exponent.length > MAX_EXPONENT || !isOdd(exponent) || (exponent.length === 1 && exponent[0] === 1))
    throw new Error('The exponent is not one of RSA')
}

/** Coordinates of both curves have 32 bytes, also with zeros in front (RFC 9053 §7.1). */
const isCoordinate = (value: unknown): boolean => value instanceof Uint8Array && value.length === 32

/** What importing a key of a curve does not check. @throws {Error} */
const assertCurveKey = (curve: number, key: ReadonlyMap<unknown, unknown>): void => {
  const { crv, x, y } = COSEKEYS
  if (curve !== key.get(crv)) throw new Error('The public key is of another curve')
  const coordinates = curve === COSECRV.P256 ? [key.get(x), key.get(y)] : [key.get(x)]
  if (!coordinates.every(isCoordinate)) throw new Error('The public key is not a point of its curve')
}

/** @returns where an integer of DER ends: positive, without needless zeros in front. `NaN` if there is none. */
const endOfInteger = (bytes: Uint8Array, start: number): number => {
  const [tag, length = 0, first = 0, second = 0] = bytes.subarray(start)
  const isShortest = first < 0x80 && (first !== 0 || length === 1 || second >= 0x80)
  return tag === 2 && length > 0 && isShortest ? start + 2 + length : Number.NaN
}

/**
 * Asserts that a signature has the only form that its numbers have. Of ES256 it is in DER (WebAuthn §6.5.5): a sequence of two integers,
 * of which the library reads several forms, and ignores what follows. It verifies the length of the others.
 * @throws {Error}
 */
export const assertSignatureForm = (publicKey: Uint8Array<ArrayBuffer>, signature: Uint8Array): void => {
  if (decodeCredentialPublicKey(publicKey).get(COSEKEYS.alg) !== COSEALG.ES256) return
  const [tag, length] = signature
  const isSequence = tag === 0x30 && length === signature.length - 2
  if (!isSequence || endOfInteger(signature, endOfInteger(signature, 2)) !== signature.length)
    throw new Error('The signature is not in DER, or something follows it')
}

/** Well-formed for each algorithm (for ECDSA: the integers 1 and 1 in DER), and wrong for every key. */
const WRONG_SIGNATURE = Uint8Array.of(0x30, 6, 2, 1, 1, 2, 1, 1)

/**
 * Asserts that signatures can be verified with a public key: a COSE key in canonical CBOR (WebAuthn §6.5.1).
 * @param publicKey base64url.
 * @throws {Error} of many kinds if anything about it is wrong, down to a stack overflow in CBOR of a hostile client.
 */
export const assertPublicKey = async (publicKey: string): Promise<void> => {
  if (publicKey.length > MAX_PUBLIC_KEY) throw new Error('The public key is too long')
  const bytes = isoBase64URL.toBuffer(publicKey)
  const key: unknown = decodeCredentialPublicKey(bytes)
  if (!(key instanceof Map)) throw new Error('The public key is no map')
  if (isoBase64URL.fromBuffer(isoCBOR.encode(key)) !== publicKey)
    throw new Error('The public key is not in canonical CBOR, or something follows it')
  const form = KEY_FORMS.get(key.get(COSEKEYS.alg))
  if (form === undefined || form.type !== key.get(COSEKEYS.kty) || form.parameters !== key.size)
    throw new Error('The public key is of another kind')
  if (form.curve === null) assertRsaKey(key.get(COSEKEYS.n), key.get(COSEKEYS.e))
  else assertCurveKey(form.curve, key)
  // Imports the key, and so checks that one of P-256 is a point of its curve.
  await verifySignature({ signature: WRONG_SIGNATURE, data: bytes, credentialPublicKey: bytes })
}
