/** The ceremonies of WebAuthn. Import this module on demand: its library takes time and memory, and most processes use no passkeys. */
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'
import { decodeAttestationObject, isoBase64URL, isoCBOR } from '@simplewebauthn/server/helpers'
import type { User } from '#core/users/user'
import { type NewCredential, type PresentedCredential, userHandleOf } from './credentials.ts'
import { ALGORITHMS, assertPublicKey, assertSignatureForm } from './public-keys.ts'
import type { RelyingParty } from './relying-party.ts'

type RegistrationResponse = Parameters<typeof verifyRegistrationResponse>[0]['response']
type Transports = NonNullable<RegistrationResponse['response']['transports']>

/** A passkey whose registration was verified. */
export interface VerifiedPasskey {
  /** base64url, as the key: COSE. */
  readonly webAuthnId: string
  readonly publicKey: string
  /** Counts signatures; 0 for passkeys that do not count. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly backedUp: boolean
}

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
  passkeys: readonly { readonly webAuthnId: string; readonly transports: readonly string[] }[],
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
    excludeCredentials: passkeys.map(({ webAuthnId, transports }) => ({
      id: webAuthnId,
      transports: transports as Transports,
    })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  })

/** Options for `PublicKeyCredential.parseRequestOptionsFromJSON`. They name no passkey: browsers offer those of this relying party. */
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
 * @throws {Error} if it is not in canonical CBOR (WebAuthn §6.5): the library ignores what follows it.
 */
const withoutAttestation = (attestationObject: string): string => {
  const given: unknown = decodeAttestationObject(bytesOf(attestationObject))
  if (!(given instanceof Map)) throw new Error('The attestation is no map')
  if (isoBase64URL.fromBuffer(isoCBOR.encode(given)) !== attestationObject)
    throw new Error('The attestation is not in canonical CBOR, or something follows it')
  const attestation = new Map<string, string | Uint8Array | Map<string, string>>([
    ['fmt', 'none'],
    ['attStmt', new Map()],
    ['authData', given.get('authData')],
  ])
  return isoBase64URL.fromBuffer(isoCBOR.encode(attestation))
}

/** @throws {Error} in a frame of another site, where a page could be laid over it. */
const assertOwnPage = (clientDataJSON: string): void => {
  const { crossOrigin } = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString())
  if (crossOrigin === true) throw new Error('The page was in a frame of another origin')
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
    webAuthnId: id,
    publicKey,
    counter: credential.counter,
    transports: [...new Set(transports)],
    backedUp,
  }
}

/**
 * Verifies a signature of a passkey (WebAuthn §7.2), but not its counter.
 * @throws {Error} of many kinds if anything about it is wrong.
 */
export const verifyCredential = async (
  { party, challenge }: Ceremony,
  { id, rawId, type, response }: PresentedCredential,
  publicKey: string,
): Promise<VerifiedUse> => {
  const { clientDataJSON, authenticatorData, signature } = response
  assertOwnPage(clientDataJSON)
  const key = bytesOf(publicKey)
  assertSignatureForm(key, bytesOf(signature))
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: {
      ...{ id, rawId, type, clientExtensionResults: {} },
      response: { clientDataJSON, authenticatorData, signature },
    },
    expectedChallenge: challenge,
    expectedOrigin: [...party.origins],
    expectedRPID: party.id,
    // The transaction of the sign-in compares counters: only there are they current.
    credential: { id, publicKey: key, counter: 0 },
    requireUserVerification: true,
  })
  if (!verified) throw new Error('The signature is wrong')
  return { counter: authenticationInfo.newCounter, backedUp: authenticationInfo.credentialBackedUp }
}
