/** What names a request, code or device: random, and stored as a digest. */
import { createHash, randomBytes } from 'node:crypto'

export const newToken = (): string => randomBytes(32).toString('base64url')

export const digestOf = (token: string): string => createHash('sha256').update(token).digest('hex')
