/** What `/forward-auth` tells a proxy of the sender of a request, and of whom it asks for more. */
import { ServiceError } from '#base/errors'
import { isMultiFactor } from '#core/accounts/sign-in-methods'
import type { Principal } from '#core/auth/principal'
import type { User } from '#core/users/user'
import type { FeatureDeps } from '#feature/declaration'
import { withReturn } from '#http/pages/return-links'
import { ERRORS } from './definitions.ts'

/** What is printable ASCII without `%` stays. Fields of HTTP cannot contain the rest everywhere. */
const ENCODED = /[^ -$&-~]+/g

const encode = (text: string): string => text.toWellFormed().replace(ENCODED, encodeURIComponent)

/**
 * All four fields, always: an application must not believe what a client has sent under the name of a missing one. What there is not, is an
 * empty text. `%`, and what is not printable ASCII, is percent-encoded.
 */
export const identityHeaders = ({ id, email, emailVerified, firstName, lastName, roles }: User) => ({
  'remote-user': id,
  'remote-email': emailVerified ? encode(email) : '',
  'remote-name': encode([firstName, lastName].filter(Boolean).join(' ')),
  'remote-groups': roles.join(','),
})

/** What a proxy asks of the sender besides being somebody. */
export interface Conditions {
  readonly role?: string | undefined
  readonly scope?: string | undefined
  readonly factors?: string | undefined
}

export class ForwardAuth {
  readonly #deps: Pick<FeatureDeps, 'config' | 'userScopes' | 'returnTargets'>

  constructor(deps: Pick<FeatureDeps, 'config' | 'userScopes' | 'returnTargets'>) {
    this.#deps = deps
  }

  /** @throws {ServiceError} `unknownScope`, `scopeRequired`, `roleRequired`, `multiFactorRequired` */
  check({ cachedUser, scopes, amr }: Principal, { role, scope, factors }: Conditions): void {
    if (scope !== undefined && !Object.hasOwn(this.#deps.userScopes, scope))
      throw new ServiceError(ERRORS.unknownScope)
    if (scope !== undefined && scopes !== null && !scopes.includes(scope))
      throw new ServiceError('scopeRequired')
    if (role !== undefined && !cachedUser.user.roles.includes(role)) throw new ServiceError('roleRequired')
    if (factors !== undefined && !isMultiFactor(amr)) throw new ServiceError('multiFactorRequired')
  }

  /** The page for sign-in. @param url of the request, to which it leads back; `null`, or of another origin: it leads nowhere. */
  signInUrl(url: string | null): string {
    const { config, returnTargets } = this.#deps
    const returnTo = returnTargets.parse(url ?? undefined)
    return `${config.publicUrl}/${withReturn('sign-in', { returnTo })}`
  }
}
