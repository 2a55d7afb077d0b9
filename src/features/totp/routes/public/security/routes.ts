/** Pages of authenticator apps and recovery codes. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { newTotpPage, recoveryCodesPage, totpIsOnPage } from '#features/totp/pages'
import type { ApiResponse } from '#http/pages/feature-pages'
import { FormText, ProofFields, pageForm } from '#routes/schemas'

const totpPages: FastifyPluginAsyncTypebox = async app => {
  if (!app.config.hasPages) return
  app.servePages()

  app.post('/totp', pageForm(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/totp' } as const
    const { body: proof } = request.validatedData
    const repeat = { action: 'security/totp' }
    return app.submitForm(request, reply, { call, proof, repeat }, ({ body: shown }) =>
      reply.sendPage(context => newTotpPage(context, { shown })),
    )
  })

  app.post('/totp/confirm', pageForm({ code: FormText }), (request, reply) => {
    const { body } = request.validatedData
    const call = { method: 'POST', path: '/account/totp/confirm', body } as const
    // The API shows a secret once, so the page with the QR code cannot be shown again.
    const form = async (errors: ApiResponse['errors']) => {
      const totp = await app.callApi(request, { method: 'GET', path: '/account/totp' })
      if (totp.status >= 400) return reply.sendFailure(totp)
      const isOn = (totp.body.confirmedAt ?? null) !== null
      return reply.sendPage(context =>
        isOn ? totpIsOnPage(context) : newTotpPage(context, { shown: null, errors }),
      )
    }
    return app.submitForm(request, reply, { call, form }, ({ body: { recoveryCodes } }) =>
      reply.sendPage(context => recoveryCodesPage(context, recoveryCodes)),
    )
  })

  app.post('/totp/remove', pageForm(ProofFields), (request, reply) => {
    const call = { method: 'DELETE', path: '/account/totp' } as const
    const { body: proof } = request.validatedData
    return app.submitForm(request, reply, { call, proof, repeat: { action: 'security/totp/remove' } }, () =>
      reply.redirectToPage('security', 'totpRemoved'),
    )
  })

  app.post('/recovery-codes', pageForm(ProofFields), (request, reply) => {
    const call = { method: 'POST', path: '/account/recovery-codes' } as const
    const { body: proof } = request.validatedData
    const repeat = { action: 'security/recovery-codes' }
    return app.submitForm(request, reply, { call, proof, repeat }, ({ body }) =>
      reply.sendPage(context => recoveryCodesPage(context, body.recoveryCodes)),
    )
  })
}

export default totpPages
