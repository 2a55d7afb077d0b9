import { bodyOf, type Call, calls, send } from './http.ts'
import type { Instance } from './instance.ts'

export const PASSWORD = 'a pass phrase for a short while'

/** Concurrent sign-ups. */
const CONCURRENCY = 4

/** A token of a user, and what ends it. */
export interface Revocable {
  readonly email: string
  readonly kind: 'session' | 'API key'
  readonly token: string
  readonly revocation: Call
  /** The status of the response to `revocation`. */
  readonly status: number
}

const createUser = async ({ url }: Instance, email: string): Promise<{ id: string; token: string }> => {
  const response = await send(url, calls.signUp(email, PASSWORD), false)
  if (response.status !== 201) throw new Error(`sign-up returned ${response.status}: ${response.text}`)
  const { user, accessToken } = bodyOf(response)
  return { id: (user as { id: string }).id, token: accessToken as string }
}

/** The session of a user, which ends when the user is disabled. */
const sessionOf = async (instance: Instance, email: string): Promise<Revocable> => {
  const { id, token } = await createUser(instance, email)
  return { email, kind: 'session', token, revocation: calls.disable(id), status: 200 }
}

/** An API key, which its user revokes. */
const apiKeyOf = async (instance: Instance, email: string): Promise<Revocable> => {
  const { token: session } = await createUser(instance, email)
  const response = await send(instance.url, calls.createApiKey(session), false)
  if (response.status !== 201) throw new Error(`no API key: ${response.status}: ${response.text}`)
  const { token, apiKey } = bodyOf(response)
  const revocation = calls.revokeApiKey(session, (apiKey as { id: string }).id)
  return { email, kind: 'API key', token: token as string, revocation, status: 204 }
}

/** Users with a session or an API key to revoke, in turn. */
export const createRevocables = async (
  instance: Instance,
  count: number,
  name: string,
): Promise<Revocable[]> => {
  const revocables: Revocable[] = []
  const numbers = Array.from({ length: count }, (_, index) => index + 1).values()
  const worker = async (): Promise<void> => {
    for (const number of numbers) {
      const create = number % 2 === 0 ? apiKeyOf : sessionOf
      revocables.push(await create(instance, `${name}-${number}@example.com`))
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return revocables
}
