/** What browsers send of passkeys: `PublicKeyCredential.toJSON()` (WebAuthn §5.1.8). Bytes are base64url. */

import type { Static } from '@sinclair/typebox'
import type {
  NewCredential as NewSchema,
  PresentedCredential as PresentedSchema,
} from './credential-schemas.ts'

export type NewCredential = Static<typeof NewSchema>

export type PresentedCredential = Static<typeof PresentedSchema>

/** @returns the challenge that was signed, not verified yet; `null` if the text is no client data. */
export const challengeIn = ({ response }: NewCredential | PresentedCredential): string | null => {
  try {
    const { challenge } = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString())
    return typeof challenge === 'string' ? challenge : null
  } catch {
    return null
  }
}

/** The user handle of WebAuthn: the 16 bytes of the user's id. */
export const userHandleOf = (userId: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(Buffer.from(userId.replaceAll('-', ''), 'hex'))
