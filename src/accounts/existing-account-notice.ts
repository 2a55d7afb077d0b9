/** With REQUIRE_EMAIL_VERIFICATION, no response reveals that an e-mail has an account. Its owner receives a mail instead. */
import { anonymous, newEvent } from '../audit-log/event.ts'
import type { EventStore } from '../audit-log/event-store.ts'
import type { UserStore } from '../users/user-store.ts'
import { MAIL_WINDOW, MAX_MAILS } from './email-token.ts'
import type { Mails } from './mails.ts'

export interface ExistingAccountNoticeDeps {
  readonly users: UserStore
  readonly events: Pick<EventStore, 'recordLimited'>
  readonly mails: Mails
  readonly clock: () => number
}

export class ExistingAccountNotice {
  readonly #deps: ExistingAccountNoticeDeps

  constructor(deps: ExistingAccountNoticeDeps) {
    this.#deps = deps
  }

  /**
   * Mails the owner of an address to which somebody wants to change the e-mail, within the limit. A free address gets no mail.
   * @param ip of the client, for the audit log.
   */
  async send(email: string, ip: string | null): Promise<void> {
    const { users, events, mails, clock } = this.#deps
    const holder = await users.findId(email)
    if (holder === undefined) return
    const now = clock()
    const event = newEvent('user.sign-up-repeated', anonymous(ip), holder, now)
    const outcome = await events.recordLimited(event, MAX_MAILS, now - MAIL_WINDOW + 1)
    if (outcome === 'recorded') mails.send('accountExists', email)
  }
}
