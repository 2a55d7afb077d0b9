/** Passkeys in imports and exports of users (docs/design.md, "Account life cycle"). They work at a service with the same RP id. */
import { setImmediate } from 'node:timers/promises'
import type { Static, TObject } from '@sinclair/typebox'
import type { FieldErrors } from '#base/errors'
import { newId } from '#base/ids'
import type { BulkFactor, FactorRows, LineUser } from '#core/accounts/bulk-factors'
import { toIso, toIsoOrNull } from '#core/users/serializers'
import type { User } from '#core/users/user'
import type schemas from './credential-schemas.ts'
import { ERRORS } from './definitions.ts'
import { type PasskeyStore, type PasskeyWithKey, passkeyRow } from './stored-passkeys.ts'

type Credentials = Static<TObject<typeof schemas>>

type PasskeyCredentials = NonNullable<Credentials['passkeys']>[number]

const NOTHING: FactorRows = { rows: [], errors: {} }

/** Users whose passkeys are read at once: at most a thousand rows, a few milliseconds. */
const SLICE = 50

const WRONG_KEY = 'must be a COSE key (RFC 9052 §7) for EdDSA, ES256 or RS256'

/** Loads the library with the first passkey. */
const isPublicKey = async (publicKey: string): Promise<boolean> => {
  const { assertPublicKey } = await import('./public-keys.ts')
  try {
    await assertPublicKey(publicKey)
    return true
  } catch {
    // It throws errors of many kinds.
    return false
  }
}

const toPasskey = (given: PasskeyCredentials, now: number): Omit<PasskeyWithKey, 'id'> => ({
  webAuthnId: given.id,
  publicKey: given.publicKey,
  counter: given.counter,
  name: given.name ?? null,
  transports: [...new Set(given.transports)],
  backedUp: given.backedUp ?? false,
  createdAt: given.createdAt === undefined ? now : Date.parse(given.createdAt),
  lastUsedAt: given.lastUsedAt ? Date.parse(given.lastUsedAt) : null,
})

const toCredentials = (passkey: PasskeyWithKey): PasskeyCredentials => {
  const { webAuthnId: id, publicKey, counter, name, transports, backedUp, createdAt, lastUsedAt } = passkey
  return {
    ...{ id, publicKey, counter, name, transports: [...transports], backedUp },
    ...{ createdAt: toIso(createdAt), lastUsedAt: toIsoOrNull(lastUsedAt) },
  }
}

type Deps = { readonly store: Pick<PasskeyStore, 'listPasskeysOf'> }

export class BulkPasskeys implements BulkFactor<Credentials> {
  readonly factor = 'passkey'
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async toRows({ keepsId }: LineUser, { passkeys = [] }: Credentials, now: number): Promise<FactorRows> {
    if (passkeys.length === 0) return NOTHING
    const errors: Record<string, readonly string[]> = {}
    // The authenticator sends the id of its user, which must be that of the account (WebAuthn §7.2, step 6).
    if (!keepsId) errors.id = ['is required: passkeys name their user by it']
    const found: { readonly passkey: Omit<PasskeyWithKey, 'id'>; readonly ifTaken: FieldErrors }[] = []
    const ids = new Set<string>()
    for (const [index, given] of passkeys.entries()) {
      const field = `credentials.passkeys.${index}`
      const ifTaken = { [`${field}.id`]: [ERRORS.passkeyExists.message] }
      if (ids.has(given.id)) Object.assign(errors, ifTaken)
      ids.add(given.id)
      if (!(await isPublicKey(given.publicKey))) errors[`${field}.publicKey`] = [WRONG_KEY]
      found.push({ passkey: toPasskey(given, now), ifTaken })
    }
    // Lists are in the order of ids.
    const rows = found
      .toSorted((one, other) => one.passkey.createdAt - other.passkey.createdAt)
      .map(({ passkey, ifTaken }) => ({ ...passkeyRow({ ...passkey, id: newId(now) }), ifTaken }))
    return { rows, errors }
  }

  async credentialsOf(users: readonly User[]): Promise<ReadonlyMap<string, Credentials>> {
    const credentials = new Map<string, { passkeys: PasskeyCredentials[] }>()
    for (let from = 0; from < users.length; from += SLICE) {
      // Other requests have their turn.
      await setImmediate()
      const ids = users.slice(from, from + SLICE).map(({ id }) => id)
      for (const { userId, passkey } of await this.#deps.store.listPasskeysOf(ids)) {
        const { passkeys } = credentials.get(userId) ?? { passkeys: [] }
        passkeys.push(toCredentials(passkey))
        credentials.set(userId, { passkeys })
      }
    }
    return credentials
  }
}
