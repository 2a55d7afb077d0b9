/** With REQUIRE_EMAIL_VERIFICATION, no response reveals that an e-mail has an account. Its owner receives a mail instead. */

import { anonymous, newEvent } from '../audit-log/event.ts'
import type { EventStore } from '../audit-log/event-store.ts'
import type { UserStore } from '../users/user-store.ts'
import { newEmailToken } from './email-token.ts'
import type { EmailTokenStore } from './email-token-store.ts'
import type { Mails } from './mails.ts'

export interface ExistingAccountNoticeDeps {
  readonly users: UserStore
  readonly emailTokens: EmailTokenStore
  readonly events: EventStore
  readonly mails: Mails
  readonly clock: () => number
}

export class ExistingAccountNotice {
  readonly #deps: ExistingAccountNoticeDeps

  constructor(deps: ExistingAccountNoticeDeps) {
    this.#deps = deps
  }

  /**
   * Mails the owner of an address that is used for a sign-up or an e-mail change, within the limit. It costs a write in
   * any case, like a free address.
   * @param ip of the client, for the audit log.
   * @returns false when the address is free by now.
   */
  async send(email: string, ip: string | null): Promise<boolean> {
    const { users, emailTokens, events, mails, clock } = this.#deps
    const holder = (await users.findByEmail(email))?.user
    if (holder === undefined) return false
    const now = clock()
    const { token, stored } = newEmailToken('accountExists', holder.id, email, now)
    const event = newEvent('user.sign-up-repeated', anonymous(ip), holder.id, now)
    const outcome = await emailTokens.add(stored, event, null)
    if (outcome === 'userNotFound') return false
    if (outcome === 'added') mails.send('accountExists', email, { token })
    else await events.record(event)
    return true
  }
}
