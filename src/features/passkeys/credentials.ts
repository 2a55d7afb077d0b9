/** What browsers send of passkeys: `PublicKeyCredential.toJSON()` (WebAuthn §5.1.8). Bytes are base64url. */

/** Passkeys of one user. */
export const MAX_PASSKEYS = 20

/** Characters of a public key: RSA keys of up to 6,000 bits. */
export const MAX_PUBLIC_KEY = 1_024

interface Credential {
  readonly id: string
  readonly rawId: string
  readonly type: 'public-key'
}

/** What `navigator.credentials.create` returns. */
export interface NewCredential extends Credential {
  readonly response: {
    readonly clientDataJSON: string
    readonly attestationObject: string
    readonly transports?: readonly string[]
  }
}

/** What `navigator.credentials.get` returns. */
export interface PresentedCredential extends Credential {
  readonly response: {
    readonly clientDataJSON: string
    readonly authenticatorData: string
    readonly signature: string
    readonly userHandle?: string | null
  }
}

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
