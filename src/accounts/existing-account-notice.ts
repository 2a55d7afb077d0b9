/** Addresses that have an account where nobody may learn of it: their holder is mailed instead. */

import type { EventStore } from '../audit-log/audit-log.ts'
import { anonymous, newEvent } from '../audit-log/event.ts'
import type { UserStore } from '../users/user-store.ts'
import { type EmailTokenStore, newEmailToken } from './email-token.ts'
import type { Mails } from './mails.ts'

export interface ExistingAccountNoticeDeps {
  readonly users: UserStore
  readonly emailTokens: EmailTokenStore
  readonly events: EventStore
  readonly mails: Mails
  readonly clock: () => number
}

export class ExistingAccountNotice {
  readonly #parts: ExistingAccountNoticeDeps

  constructor(parts: ExistingAccountNoticeDeps) {
    this.#parts = parts
  }

  /**
   * Tells the holder, unless too often, that somebody wants the address. Costs a write in any case, as an address does that
   * is free.
   * @param ip of whoever wants it.
   * @returns false when the address is free by now.
   */
  async send(email: string, ip: string | null): Promise<boolean> {
    const { users, emailTokens, events, mails, clock } = this.#parts
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
