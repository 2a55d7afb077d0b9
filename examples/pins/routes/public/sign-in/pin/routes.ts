/** The page to sign in with a PIN. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { FormText, pageForm } from '#routes/schemas'
import { pinSignInPage } from '../../../../pages.ts'

const routes: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.get('', { schema: { hide: true } }, (_request, reply) =>
    reply.sendPage(context => pinSignInPage(context)),
  )

  app.post(
    '',
    pageForm({ email: FormText, pin: FormText, code: Type.Optional(FormText) }),
    async (request, reply) => {
      const { email, pin, code } = request.validatedData.body
      const body = { email, pin, ...(code && { code }) }
      const call = { method: 'POST', path: '/account/sign-in/pin', body } as const
      const form = (errors: Readonly<Record<string, readonly string[]>>) =>
        reply.sendPage(context =>
          pinSignInPage(context, { email, wantsCode: code !== undefined || 'code' in errors, errors }),
        )
      return app.submitForm(request, reply, { call, form }, response =>
        reply.relay(response).redirectSignedIn(),
      )
    },
  )
}

export default routes
