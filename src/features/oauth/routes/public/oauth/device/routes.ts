import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ERRORS } from '#features/oauth/definitions'
import { ErrorOf } from '#routes/schemas'
import { clientRequestOf, serveClients } from '../../../endpoint.ts'
import { DeviceForm, DeviceResponse } from '../../../endpoint-schemas.ts'

const device: FastifyPluginAsyncTypebox = async app => {
  const { oauth } = app.services
  if (oauth === null || !app.config.hasPages) return
  serveClients(app)

  app.post(
    '',
    {
      config: { rateLimit: 'oauth-device' },
      schema: {
        operationId: 'requestDeviceCode',
        summary: 'Get a code that a person enters in a browser, for a device without one (RFC 8628)',
        tags: ['oauth'],
        body: DeviceForm,
        response: { 200: DeviceResponse, 401: ErrorOf(ERRORS.invalidClient) },
      },
    },
    request =>
      oauth.tokenEndpoint.beginDevice(
        clientRequestOf(request, request.validatedData.body),
        request.clientAddress,
      ),
  )
}

export default device
