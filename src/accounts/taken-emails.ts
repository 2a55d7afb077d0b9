/** Addresses that have an account where nobody may learn of it: their holder is mailed instead. */
import { anonymous, newEvent } from '../users/event.ts'
import type { EventStore } from '../users/events.ts'
import type { UserStore } from '../users/user-store.ts'
import { type MailedTokenStore, newMailedToken } from './mailed-token.ts'
import type { Mails } from './mails.ts'

export interface TakenEmailsParts {
  readonly users: UserStore
  readonly mailedTokens: MailedTokenStore
  readonly events: EventStore
  readonly mails: Mails
  readonly clock: () => number
}

export class TakenEmails {
  readonly #parts: TakenEmailsParts

  constructor(parts: TakenEmailsParts) {
    this.#parts = parts
  }

  /**
   * Tells the holder, unless too often, that somebody wants the address. Costs a write in any case, as an address does that
   * is free.
   * @param ip of whoever wants it.
   * @returns false when the address is free by now.
   */
  async tellHolder(email: string, ip: string | null): Promise<boolean> {
    const { users, mailedTokens, events, mails, clock } = this.#parts
    const holder = (await users.findByEmail(email))?.user
    if (holder === undefined) return false
    const now = clock()
    const { token, stored } = newMailedToken('accountExists', holder.id, email, now)
    const event = newEvent('user.sign-up-repeated', anonymous(ip), holder.id, now)
    const outcome = await mailedTokens.add(stored, event, null)
    if (outcome === 'userNotFound') return false
    if (outcome === 'added') mails.accountExists(email, token)
    else await events.record(event)
    return true
  }
}
