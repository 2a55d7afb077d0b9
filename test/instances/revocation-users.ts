import { bodyOf, calls, send } from './http.ts'
import type { Instance } from './instance.ts'

export const PASSWORD = 'a pass phrase for a short while'

/** Sign-ups under way at once. */
const CONCURRENCY = 4

export interface Revocable {
  readonly id: string
  readonly email: string
  readonly token: string
}

/** Users who are there to be disabled. */
export const createUsers = async (instance: Instance, count: number, name: string): Promise<Revocable[]> => {
  const users: Revocable[] = []
  const numbers = Array.from({ length: count }, (_, index) => index + 1).values()
  const worker = async (): Promise<void> => {
    for (const number of numbers) {
      const email = `${name}-${number}@example.com`
      const response = await send(instance.url, calls.signUp(email, PASSWORD), false)
      if (response.status !== 201) throw new Error(`sign-up answered ${response.status}: ${response.text}`)
      const { user, accessToken } = bodyOf(response)
      users.push({ email, id: (user as { id: string }).id, token: accessToken as string })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return users
}
