/** The page to sign in. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { signInPage } from '#http/pages/signed-out'
import { FormText, Strict } from '../../schemas.ts'

const signIn: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()
  const { signInParts } = app

  app.get('', { schema: { hide: true } }, (_request, reply) =>
    reply.sendPage(context => signInPage(context, signInParts)),
  )

  const SignIn = Strict({ email: FormText, password: FormText, code: Type.Optional(FormText) })

  app.post('', { schema: { hide: true, body: SignIn } }, async (request, reply) => {
    const { email, password, code } = request.validatedData.body
    const body = { email, password, ...(code && { code }) }
    const response = await app.callApi(request, { method: 'POST', path: '/account/sign-in', body })
    reply.relay(response)
    if (response.status === 200) return reply.redirectSignedIn()
    const { errors } = response
    // The password is asked for again, so that it is never in a page, which browsers store.
    const wantsCode = code !== undefined || 'code' in errors
    return reply.sendPage(context => signInPage(context, signInParts, { email, wantsCode, errors }))
  })
}

export default signIn
