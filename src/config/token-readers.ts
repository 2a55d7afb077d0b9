/** The readers of JWT_PRIVATE_KEY and JWT_AUDIENCE. */
import { type PrivateKey, PrivateKeyError, parsePrivateKey } from '../auth/private-key.ts'
import { type Reader, SettingError } from './readers.ts'

/** PKCS#8 PEM of an Ed25519 or P-256 key. Line breaks may be written as `\n`, because not every platform can set several lines. */
export const privateKey: Reader<PrivateKey> = value => {
  try {
    return parsePrivateKey(value)
  } catch (error) {
    throw error instanceof PrivateKeyError ? new SettingError(error.message) : error
  }
}

const MAX_AUDIENCE = 256

/** A name or a URL (StringOrURI, RFC 7519 §2), which JSON writes unchanged. */
export const audience: Reader<string> = value => {
  if (value.length > MAX_AUDIENCE || !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value))
    throw new SettingError(
      `must be a name such as gatehouse or a URL, of at most ${MAX_AUDIENCE} visible ASCII characters`,
      value,
    )
  return value
}
