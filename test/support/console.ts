/** The console for tests. */
import type { FastifyInstance } from 'fastify'
import { ADMIN_KEY } from './build.ts'
import { FormClient, type FormClientOptions } from './form-client.ts'

/** A browser without script that has signed in to the console. */
export const signedInTo = async (
  app: FastifyInstance,
  adminKey = ADMIN_KEY,
  options: FormClientOptions = {},
): Promise<FormClient> => {
  const client = new FormClient(app, options)
  await client.open('/console/sign-in')
  await client.submit('sign-in', { adminKey })
  if (client.path !== '/console') throw new Error(`the sign-in led to ${client.path}: ${client.page}`)
  return client
}
