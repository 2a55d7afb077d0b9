/** The form that makes new recovery codes. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { recoveryCodesPage } from '#features/totp/pages'
import { ProofFields, pageForm } from '#routes/schemas'

const recoveryCodesForm: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.post('', pageForm(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/recovery-codes' } as const
    const { body: proof } = request.validatedData
    return app.submitForm(
      request,
      reply,
      { call, proof, repeat: { action: 'security/recovery-codes' } },
      ({ body }) => reply.sendPage(context => recoveryCodesPage(context, body.recoveryCodes)),
    )
  })
}

export default recoveryCodesForm
