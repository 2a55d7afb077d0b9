/** An authenticator in software: makes passkeys and signs with them, correctly or wrongly (WebAuthn §6). */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

type Cbor = number | string | Uint8Array | boolean | readonly Cbor[] | ReadonlyMap<number | string, Cbor>

const head = (major: number, value: number): Buffer => {
  if (value < 24) return Buffer.of((major << 5) | value)
  if (value < 0x1_00) return Buffer.of((major << 5) | 24, value)
  if (value < 0x1_00_00) return Buffer.of((major << 5) | 25, value >> 8, value & 0xff)
  const bytes = Buffer.alloc(5)
  bytes[0] = (major << 5) | 26
  bytes.writeUInt32BE(value, 1)
  return bytes
}

/** RFC 8949, as far as attestations need it. */
export const cbor = (value: Cbor): Buffer => {
  if (typeof value === 'boolean') return Buffer.of(value ? 0xf5 : 0xf4)
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  if (value instanceof Map)
    return Buffer.concat([
      head(5, value.size),
      ...[...value].flatMap(([key, item]) => [cbor(key), cbor(item)]),
    ])
  const items = value as readonly Cbor[]
  return Buffer.concat([head(4, items.length), ...items.map(cbor)])
}

export const FLAGS = { up: 0x01, uv: 0x04, be: 0x08, bs: 0x10, at: 0x40, ed: 0x80 }

const ALGORITHMS = {
  ES256: { id: -7, generate: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }), digest: 'sha256' },
  EdDSA: { id: -8, generate: () => generateKeyPairSync('ed25519'), digest: null },
  RS256: { id: -257, generate: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }), digest: 'sha256' },
} as const

export type Algorithm = keyof typeof ALGORITHMS

/** RFC 9053 §7. */
const coseKey = (algorithm: Algorithm, key: KeyObject): Map<number, Cbor> => {
  const jwk = key.export({ format: 'jwk' })
  const bytes = (text = '') => Buffer.from(text, 'base64url')
  const { id } = ALGORITHMS[algorithm]
  const common: [number, Cbor][] = [[3, id]]
  if (algorithm === 'ES256')
    return new Map<number, Cbor>([[1, 2], ...common, [-1, 1], [-2, bytes(jwk.x)], [-3, bytes(jwk.y)]])
  if (algorithm === 'EdDSA') return new Map<number, Cbor>([[1, 1], ...common, [-1, 6], [-2, bytes(jwk.x)]])
  return new Map<number, Cbor>([[1, 3], ...common, [-1, bytes(jwk.n)], [-2, bytes(jwk.e)]])
}

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')
const sha256 = (bytes: string | Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

export interface AuthenticatorOptions {
  readonly algorithm?: Algorithm
  /** Where the browser is. */
  readonly origin?: string
  /** The first counter; `null`: it does not count. */
  readonly counter?: number | null
}

/** What a test changes in a response. */
export interface Changes {
  readonly type?: string
  readonly origin?: string
  readonly challenge?: string
  readonly crossOrigin?: boolean
  readonly rpId?: string
  readonly flags?: number
  readonly counter?: number
  readonly userHandle?: string | null | undefined
  readonly fmt?: string
  readonly attStmt?: ReadonlyMap<string, Cbor>
  /** In place of the public key. */
  readonly publicKey?: Cbor
  /** Behind the authenticator data of a sign-in, signed with it: extensions, or what does not belong there. */
  readonly behind?: Uint8Array
  /** In place of the id in the authenticator data. */
  readonly credentialId?: Uint8Array
}

interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id: string }
  readonly user: { readonly id: string }
}

interface RequestOptions {
  readonly challenge: string
  readonly rpId: string
}

/** One passkey, made with the first options. */
export class SoftwareAuthenticator {
  readonly id = randomBytes(16)
  readonly #algorithm: Algorithm
  readonly #keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
  readonly #origin: string
  #counter: number | null
  #userHandle: string | null = null

  constructor({ algorithm = 'ES256', origin = ORIGIN, counter = 1 }: AuthenticatorOptions = {}) {
    this.#algorithm = algorithm
    this.#keys = ALGORITHMS[algorithm].generate()
    this.#origin = origin
    this.#counter = counter
  }

  /** `navigator.credentials.create(…)`, as JSON. */
  create({ challenge, rp, user }: CreationOptions, changes: Changes = {}) {
    this.#userHandle = user.id
    const credentialId = changes.credentialId ?? this.id
    const length = Buffer.alloc(2)
    length.writeUInt16BE(credentialId.length)
    const publicKey = changes.publicKey ?? coseKey(this.#algorithm, this.#keys.publicKey)
    const authData = Buffer.concat([
      this.#authenticatorData(rp.id, FLAGS.up | FLAGS.uv | FLAGS.at, changes),
      ...[Buffer.alloc(16), length, credentialId, cbor(publicKey)],
    ])
    const attestation = new Map<string, Cbor>([
      ['fmt', changes.fmt ?? 'none'],
      ['attStmt', changes.attStmt ?? new Map()],
      ['authData', authData],
    ])
    return {
      ...this.#identity(),
      authenticatorAttachment: 'platform',
      clientExtensionResults: { credProps: { rk: true } },
      response: {
        clientDataJSON: this.#clientData('webauthn.create', challenge, changes),
        attestationObject: base64url(cbor(attestation)),
        transports: ['internal', 'hybrid'],
        publicKeyAlgorithm: ALGORITHMS[this.#algorithm].id,
      },
    }
  }

  /** `navigator.credentials.get(…)`, as JSON. */
  get({ challenge, rpId }: RequestOptions, changes: Changes = {}) {
    const authData = Buffer.concat([
      this.#authenticatorData(rpId, FLAGS.up | FLAGS.uv, changes),
      changes.behind ?? Buffer.alloc(0),
    ])
    const clientData = this.#clientData('webauthn.get', challenge, changes)
    const signed = Buffer.concat([authData, sha256(Buffer.from(clientData, 'base64url'))])
    const userHandle = changes.userHandle === undefined ? this.#userHandle : changes.userHandle
    return {
      ...this.#identity(),
      clientExtensionResults: {},
      response: {
        clientDataJSON: clientData,
        authenticatorData: base64url(authData),
        signature: base64url(sign(ALGORITHMS[this.#algorithm].digest, signed, this.#keys.privateKey)),
        ...(userHandle === null ? {} : { userHandle }),
      },
    }
  }

  #identity() {
    const id = base64url(this.id)
    return { id, rawId: id, type: 'public-key' }
  }

  #clientData(type: string, challenge: string, changes: Changes): string {
    const data = {
      type: changes.type ?? type,
      challenge: changes.challenge ?? challenge,
      origin: changes.origin ?? this.#origin,
      crossOrigin: changes.crossOrigin ?? false,
    }
    return base64url(Buffer.from(JSON.stringify(data)))
  }

  #authenticatorData(rpId: string, flags: number, changes: Changes): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(changes.counter ?? this.#counter ?? 0)
    if (this.#counter !== null) this.#counter += 1
    return Buffer.concat([sha256(changes.rpId ?? rpId), Buffer.of(changes.flags ?? flags), counter])
  }
}

/** The page of the services in tests. */
export const ORIGIN = 'http://localhost:3000'
