import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { noStore } from '#feature/no-store'
import { NewCredential } from '#features/passkeys/credential-schemas'
import { ERRORS } from '#features/passkeys/definitions'
import { serializePasskey } from '#features/passkeys/passkeys'
import { Passkey, PasskeyCreationOptions, PasskeyList } from '#features/passkeys/routes/schemas'
import { refuseImpersonation, userActor } from '#routes/request-context'
import { EndOthers, ErrorOf, IdParams, KeyName, Strict, withExample } from '#routes/schemas'

const passkeysOfAccount: FastifyPluginAsyncTypebox = async app => {
  const { passkeys } = app.services
  app.addHook('preSerialization', noStore)

  const Request = Strict({
    credential: NewCredential,
    name: Type.Optional(withExample(KeyName, 'Work laptop')),
  })

  app.post(
    '/options',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'createPasskeyOptions',
        summary: 'Begin to add a passkey: get options for navigator.credentials.create',
        response: {
          200: PasskeyCreationOptions,
          409: ErrorOf(ERRORS.tooManyPasskeys),
        },
      },
    },
    async request => passkeys.creationOptions(request.requirePrincipal()),
  )

  app.post(
    '',
    {
      schema: {
        operationId: 'createPasskey',
        summary: 'Add the passkey that the browser has made: it signs in without e-mail and password',
        querystring: EndOthers,
        body: Request,
        response: { 201: Passkey, 409: ErrorOf(ERRORS.passkeyExists) },
      },
    },
    async (request, reply) => {
      refuseImpersonation(request)
      const { body, query } = request.validatedData
      const { credential, name = null } = body
      const passkey = await passkeys.add(
        request.requirePrincipal(),
        { credential, name },
        { endsOthers: query.endOthers, actor: userActor(request) },
      )
      reply.code(201)
      return serializePasskey(passkey)
    },
  )

  app.get(
    '',
    {
      schema: {
        operationId: 'listPasskeys',
        summary: 'List your passkeys, newest first',
        response: { 200: PasskeyList },
      },
    },
    async ({ user }) => ({ results: (await passkeys.list(user.id)).map(serializePasskey) }),
  )

  app.delete(
    '/:id',
    {
      config: { reauthenticate: true },
      schema: {
        operationId: 'deletePasskey',
        summary: 'Remove a passkey',
        params: IdParams,
        querystring: EndOthers,
        response: {
          204: Type.Null(),
          404: ErrorOf(ERRORS.passkeyNotFound),
          409: ErrorOf('lastSignInMethod'),
        },
      },
    },
    async (request, reply) => {
      const { params, query } = request.validatedData
      await passkeys.remove(request.requirePrincipal(), params.id, {
        endsOthers: query.endOthers,
        actor: userActor(request),
      })
      return reply.code(204).send(null)
    },
  )
}

export default passkeysOfAccount
