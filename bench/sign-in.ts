/** An account, and the request that signs in to it. */
import type { Server } from './processes.ts'
import { rawRequest } from './requests.ts'

const CREDENTIALS = { email: 'ada@example.com', password: 'a rather long pass phrase 7' }

export const signUpOne = async ({ url }: Server): Promise<void> => {
  const response = await fetch(`${url}/account/sign-up`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(CREDENTIALS),
  })
  if (response.status !== 201) throw new Error(`The sign-up failed with ${response.status}`)
}

const SIGN_IN = rawRequest({
  method: 'POST',
  path: '/account/sign-in',
  headers: {},
  body: JSON.stringify(CREDENTIALS),
})

export const signInRequest = (): string => SIGN_IN
