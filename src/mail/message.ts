/** What is sent, and what sends it. */
import type { Mails } from '../accounts/mails.ts'

export type MailKind = keyof Mails

export interface Content {
  readonly subject: string
  readonly text: string
  readonly html: string
}

export interface Message extends Content {
  /** A UUIDv7: the same at every attempt, so that a mailbox that has the message already can see it. */
  readonly id: string
  readonly date: Date
  readonly to: string
}

export interface Transport {
  /** @throws {Error} when the message could not be handed over; failures.ts says whether another attempt makes sense. */
  send(message: Message): Promise<void>
  /** Lets go of connections: what is under way fails. */
  close(): void
}
