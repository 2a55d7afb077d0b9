/** The ceremonies of WebAuthn. Import this module on demand: its library takes time and memory, and most processes use no passkeys. */
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import {
  COSEALG,
  cose,
  decodeAttestationObject,
  decodeCredentialPublicKey,
  isoBase64URL,
  isoCBOR,
  verifySignature,
} from '@simplewebauthn/server/helpers'
import type { User } from '../users/user.ts'
import { MAX_PUBLIC_KEY, type NewCredential, type PresentedCredential, userHandleOf } from './credentials.ts'
import { isEd25519Point } from './ed25519.ts'
import type { RelyingParty } from './relying-party.ts'

/** By preference. The library would ask for ML-DSA too where Node has it, and such a passkey would fail on an instance without. */
const ALGORITHMS = [COSEALG.EdDSA, COSEALG.ES256, COSEALG.RS256]

type RegistrationResponse = Parameters<typeof verifyRegistrationResponse>[0]['response']
type Transports = NonNullable<RegistrationResponse['response']['transports']>

/** A passkey whose registration was verified. */
export interface VerifiedPasskey {
  /** base64url, as the key: COSE. */
  readonly credentialId: string
  readonly publicKey: string
  /** Of signatures; 0 for passkeys that do not count. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly backedUp: boolean
}

/** A verified signature. */
export interface VerifiedUse {
  readonly counter: number
  readonly backedUp: boolean
}

export interface Ceremony {
  readonly party: RelyingParty
  /** base64url. */
  readonly challenge: string
  /** Milliseconds that the user has. */
  readonly timeout: number
}

const bytesOf = (base64url: string): Uint8Array<ArrayBuffer> => isoBase64URL.toBuffer(base64url)

export type CreationOptions = Awaited<ReturnType<typeof generateRegistrationOptions>>
export type RequestOptions = Awaited<ReturnType<typeof generateAuthenticationOptions>>

/** For `PublicKeyCredential.parseCreationOptionsFromJSON`. @param passkeys of the user, so that no device makes a second one. */
export const creationOptions = (
  { party, challenge, timeout }: Ceremony,
  { id, email, firstName, lastName }: User,
  passkeys: readonly { readonly credentialId: string; readonly transports: readonly string[] }[],
): Promise<CreationOptions> =>
  generateRegistrationOptions({
    rpID: party.id,
    rpName: party.name,
    userID: userHandleOf(id),
    userName: email,
    userDisplayName: [firstName, lastName].filter(name => name !== null).join(' ') || email,
    challenge: bytesOf(challenge),
    timeout,
    attestationType: 'none',
    excludeCredentials: passkeys.map(({ credentialId, transports }) => ({
      id: credentialId,
      transports: transports as Transports,
    })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  })

/** For `PublicKeyCredential.parseRequestOptionsFromJSON`. It names no passkey: the browser offers those of this relying party. */
export const requestOptions = ({ party, challenge, timeout }: Ceremony): Promise<RequestOptions> =>
  generateAuthenticationOptions({
    rpID: party.id,
    challenge: bytesOf(challenge),
    timeout,
    userVerification: 'required',
  })

/**
 * An attestation says which device made a passkey. Nobody asks here, so its statement is dropped unread: the library would verify
 * certificates of the client, and request the revocation lists that they name.
 */
const withoutAttestation = (attestationObject: string): string => {
  const authData = decodeAttestationObject(bytesOf(attestationObject)).get('authData')
  const attestation = new Map<string, string | Uint8Array | Map<string, string>>([
    ['fmt', 'none'],
    ['attStmt', new Map()],
    ['authData', authData],
  ])
  return isoBase64URL.fromBuffer(isoCBOR.encode(attestation))
}

/** @throws {Error} in a frame of another site, where a page could be laid over it. */
const assertOwnPage = (clientDataJSON: string): void => {
  const { crossOrigin } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString())
  if (crossOrigin === true) throw new Error('The page was in a frame of another origin')
}

/** A key of one of {@link ALGORITHMS}. */
interface KeyForm {
  readonly type: number
  /** `null` for RSA. */
  readonly curve: number | null
  /** How many parameters the key has. There may be no others (WebAuthn §6.5.1), such as those of a private key. */
  readonly parameters: number
}

const { COSECRV, COSEKEYS, COSEKTY } = cose

/** RFC 9053 §7; the curves of WebAuthn §5.8.5. */
const KEY_FORMS: ReadonlyMap<unknown, KeyForm> = new Map([
  [COSEALG.EdDSA, { type: COSEKTY.OKP, curve: COSECRV.ED25519, parameters: 4 }],
  [COSEALG.ES256, { type: COSEKTY.EC2, curve: COSECRV.P256, parameters: 5 }],
  [COSEALG.RS256, { type: COSEKTY.RSA, curve: null, parameters: 4 }],
])

/** RFC 8812 §2. */
const MIN_RSA_BYTES = 256

/** Bytes of an exponent. OpenSSL takes longer ones for keys up to 3,072 bits, and then 16 ms for a signature. */
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

/** Of both curves: 32 bytes, also with zeros in front (RFC 9053 §7.1). */
const isCoordinate = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array && value.length === 32

/** What importing a key of a curve does not check. @throws {Error} */
const assertCurveKey = (curve: number, key: ReadonlyMap<unknown, unknown>): void => {
  if (curve !== key.get(COSEKEYS.crv)) throw new Error('The public key is of another curve')
  const [x, y] = [key.get(COSEKEYS.x), key.get(COSEKEYS.y)]
  const isPoint = isCoordinate(x) && (curve === COSECRV.ED25519 ? isEd25519Point(x) : isCoordinate(y))
  if (!isPoint) throw new Error('The public key is not a point of its curve')
}

/** Well-formed for each algorithm (for ECDSA: the integers 1 and 1 in DER), and wrong for every key. */
const WRONG_SIGNATURE = Uint8Array.of(0x30, 6, 2, 1, 1, 2, 1, 1)

/**
 * Asserts that {@link verifyCredential} can use a public key: a COSE key in canonical CBOR (WebAuthn §6.5.1).
 * @param publicKey base64url.
 * @throws {Error} of many kinds, as {@link verifyNewCredential}
 */
export const assertPublicKey = async (publicKey: string): Promise<void> => {
  if (publicKey.length > MAX_PUBLIC_KEY) throw new Error('The public key is too long')
  const bytes = bytesOf(publicKey)
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

/**
 * Verifies a new passkey (WebAuthn §7.1).
 * @throws {Error} of many kinds if anything about it is wrong, down to a stack overflow in CBOR of a hostile client.
 */
export const verifyNewCredential = async (
  { party, challenge }: Ceremony,
  { id, rawId, type, response }: NewCredential,
): Promise<VerifiedPasskey> => {
  const { clientDataJSON, attestationObject, transports } = response
  assertOwnPage(clientDataJSON)
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response: {
      ...{ id, rawId, type, clientExtensionResults: {} },
      response: { clientDataJSON, attestationObject: withoutAttestation(attestationObject) },
    },
    expectedChallenge: challenge,
    expectedOrigin: [...party.origins],
    expectedRPID: party.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  })
  if (!verified) throw new Error('The attestation is wrong')
  const { credential, credentialBackedUp: backedUp } = registrationInfo
  if (credential.id !== id) throw new Error('The attestation is for another credential')
  const publicKey = isoBase64URL.fromBuffer(credential.publicKey)
  await assertPublicKey(publicKey)
  return {
    credentialId: id,
    publicKey,
    counter: credential.counter,
    transports: [...new Set(transports)],
    backedUp,
  }
}

/**
 * Verifies a signature of a passkey (WebAuthn §7.2), but not its counter.
 * @throws {Error} as {@link verifyNewCredential}
 */
export const verifyCredential = async (
  { party, challenge }: Ceremony,
  { id, rawId, type, response }: PresentedCredential,
  publicKey: string,
): Promise<VerifiedUse> => {
  const { clientDataJSON, authenticatorData, signature } = response
  assertOwnPage(clientDataJSON)
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: {
      ...{ id, rawId, type, clientExtensionResults: {} },
      response: { clientDataJSON, authenticatorData, signature },
    },
    expectedChallenge: challenge,
    expectedOrigin: [...party.origins],
    expectedRPID: party.id,
    // The transaction of the sign-in compares counters: only there are they current.
    credential: { id, publicKey: bytesOf(publicKey), counter: 0 },
    requireUserVerification: true,
  })
  if (!verified) throw new Error('The signature is wrong')
  return { counter: authenticationInfo.newCounter, backedUp: authenticationInfo.credentialBackedUp }
}
