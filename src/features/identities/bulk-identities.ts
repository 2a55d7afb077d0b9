/** Identities in imports and exports of users (docs/design.md, "Account life cycle"). They sign in where their issuer is configured. */

import type { Static, TObject } from '@sinclair/typebox'
import { newId } from '#base/ids'
import type { BulkFactor, FactorRows, LineUser } from '#core/accounts/bulk-factors'
import { toIso, toIsoOrNull } from '#core/users/serializers'
import type { User } from '#core/users/user'
import type schemas from './credential-schemas.ts'
import { ERRORS } from './definitions.ts'
import { type Identity, type IdentityStore, identityRow } from './stored-identities.ts'

type Credentials = Static<TObject<typeof schemas>>

type IdentityCredentials = NonNullable<Credentials['identities']>[number]

/** Users whose identities are read at once. */
const SLICE = 200

const toIdentity = (given: IdentityCredentials, now: number): Omit<Identity, 'id'> => ({
  ...given,
  email: given.email ?? null,
  linkedAt: given.linkedAt === undefined ? now : Date.parse(given.linkedAt),
  lastUsedAt: given.lastUsedAt ? Date.parse(given.lastUsedAt) : null,
})

const toCredentials = ({ issuer, subject, provider, email, ...identity }: Identity): IdentityCredentials => ({
  ...{ issuer, subject, provider, email },
  linkedAt: toIso(identity.linkedAt),
  lastUsedAt: toIsoOrNull(identity.lastUsedAt),
})

type Deps = { readonly store: Pick<IdentityStore, 'listIdentitiesOf'> }

export class BulkIdentities implements BulkFactor<Credentials> {
  readonly factor = null
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  toRows(_user: LineUser, { identities = [] }: Credentials, now: number): FactorRows {
    const errors: Record<string, readonly string[]> = {}
    const keys = new Set<string>()
    const found = identities.map((given, index) => {
      const ifTaken = { [`credentials.identities.${index}.subject`]: [ERRORS.identityTaken.message] }
      const key = JSON.stringify([given.issuer, given.subject])
      if (keys.has(key)) Object.assign(errors, ifTaken)
      keys.add(key)
      return { identity: toIdentity(given, now), ifTaken }
    })
    // Lists are in the order of ids.
    const rows = found
      .toSorted((one, other) => one.identity.linkedAt - other.identity.linkedAt)
      .map(({ identity, ifTaken }) => ({ ...identityRow({ ...identity, id: newId(now) }), ifTaken }))
    return { rows, errors }
  }

  async credentialsOf(users: readonly User[]): Promise<ReadonlyMap<string, Credentials>> {
    const credentials = new Map<string, { identities: IdentityCredentials[] }>()
    for (let from = 0; from < users.length; from += SLICE) {
      const ids = users.slice(from, from + SLICE).map(({ id }) => id)
      for (const { userId, identity } of await this.#deps.store.listIdentitiesOf(ids)) {
        const { identities } = credentials.get(userId) ?? { identities: [] }
        identities.push(toCredentials(identity))
        credentials.set(userId, { identities })
      }
    }
    return credentials
  }
}
