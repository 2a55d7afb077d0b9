import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { ERRORS } from '#features/webhooks/definitions'
import { serializeAttempt, serializeWebhook, type Webhook as WebhookRecord } from '#features/webhooks/webhook'
import { adminActor } from '#routes/request-context'
import { ErrorOf, IdParams } from '#routes/schemas'
import {
  ChangedWebhook,
  CreatedWebhook,
  NewWebhook,
  Replay,
  ReplayedWebhook,
  RequestedPing,
  ResumedWebhook,
  RotatedSecret,
  Webhook,
  WebhookAttemptList,
  WebhookList,
} from '../../schemas.ts'

const config = { scope: 'webhooks:write' } as const

const webhookRoutes: FastifyPluginAsyncTypebox = async app => {
  const { webhooks, eventSchemas } = app.services
  const types = Object.keys(eventSchemas)
  const { publicKey } = webhooks
  const serialize = (webhook: WebhookRecord) => ({ ...serializeWebhook(webhook), publicKey })

  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })

  app.post(
    '',
    {
      config,
      schema: {
        operationId: 'createWebhook',
        summary:
          'Create a webhook, which gets every event from now on. The response shows its secret for the only time',
        body: NewWebhook(types),
        response: {
          201: CreatedWebhook,
          403: ErrorOf(ERRORS.encryptionKeyMissing),
          409: ErrorOf(ERRORS.tooManyWebhooks),
        },
      },
    },
    async (request, reply) => {
      const { url, types: chosen = null, description = null } = request.validatedData.body
      const options = { url, types: chosen, description }
      const { webhook, secret } = await webhooks.create(options, adminActor(request))
      reply.code(201)
      return { ...serialize(webhook), secret }
    },
  )

  app.get(
    '',
    {
      config,
      schema: {
        operationId: 'listWebhooks',
        summary: 'List all webhooks',
        response: { 200: WebhookList },
      },
    },
    async () => ({ results: (await webhooks.list()).map(serialize) }),
  )

  app.get(
    '/:id',
    {
      config,
      schema: {
        operationId: 'getWebhook',
        summary: 'Get a webhook',
        params: IdParams,
        response: { 200: Webhook, 404: ErrorOf(ERRORS.webhookNotFound) },
      },
    },
    async request => serialize(await webhooks.get(request.validatedData.params.id)),
  )

  app.put(
    '/:id',
    {
      config,
      schema: {
        operationId: 'updateWebhook',
        summary: 'Change a webhook. What is not given stays; an event that fails is sent again at once',
        params: IdParams,
        body: ChangedWebhook(types),
        response: {
          200: Webhook,
          404: ErrorOf(ERRORS.webhookNotFound),
          409: ErrorOf(ERRORS.webhookChanged),
        },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      return serialize(await webhooks.change(params.id, body, adminActor(request)))
    },
  )

  app.delete(
    '/:id',
    {
      config,
      schema: {
        operationId: 'deleteWebhook',
        summary: 'Delete a webhook',
        params: IdParams,
        response: { 204: Type.Null(), 404: ErrorOf(ERRORS.webhookNotFound) },
      },
    },
    async (request, reply) => {
      await webhooks.remove(request.validatedData.params.id, adminActor(request))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/:id/attempts',
    {
      config,
      schema: {
        operationId: 'listWebhookAttempts',
        summary: 'List the last 100 attempts to deliver, newest first',
        params: IdParams,
        response: { 200: WebhookAttemptList, 404: ErrorOf(ERRORS.webhookNotFound) },
      },
    },
    async request => ({
      results: (await webhooks.attempts(request.validatedData.params.id)).map(serializeAttempt),
    }),
  )

  app.post(
    '/:id/rotate-secret',
    {
      config,
      schema: {
        operationId: 'rotateWebhookSecret',
        summary: 'Get a new secret. The former one signs, too, for a day',
        params: IdParams,
        response: {
          200: RotatedSecret,
          404: ErrorOf(ERRORS.webhookNotFound),
          409: ErrorOf(ERRORS.webhookChanged),
        },
      },
    },
    async request => {
      const { secret, formerExpiresAt } = await webhooks.rotateSecret(
        request.validatedData.params.id,
        adminActor(request),
      )
      return { secret, formerSecretExpiresAt: new Date(formerExpiresAt).toISOString() }
    },
  )

  app.post(
    '/:id/ping',
    {
      config,
      schema: {
        operationId: 'pingWebhook',
        summary: 'Send a `webhook.ping` soon, also to a webhook that is paused or disabled. See its attempts',
        params: IdParams,
        response: { 202: RequestedPing, 404: ErrorOf(ERRORS.webhookNotFound) },
      },
    },
    async (request, reply) => {
      reply.code(202)
      return { id: await webhooks.ping(request.validatedData.params.id) }
    },
  )

  app.post(
    '/:id/pause',
    {
      config,
      schema: {
        operationId: 'pauseWebhook',
        summary: 'Pause a webhook. Its events wait',
        params: IdParams,
        response: { 200: Webhook, 404: ErrorOf(ERRORS.webhookNotFound) },
      },
    },
    async request => serialize(await webhooks.pause(request.validatedData.params.id, adminActor(request))),
  )

  app.post(
    '/:id/resume',
    {
      config,
      schema: {
        operationId: 'resumeWebhook',
        summary: 'Deliver what waits, at once, also to a webhook that is disabled',
        params: IdParams,
        body: ResumedWebhook,
        response: {
          200: Webhook,
          404: ErrorOf(ERRORS.webhookNotFound),
          409: ErrorOf(ERRORS.webhookNotFailing),
        },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      return serialize(await webhooks.resume(params.id, body?.skip ?? false, adminActor(request)))
    },
  )

  app.post(
    '/:id/replay',
    {
      config,
      schema: {
        operationId: 'replayWebhook',
        summary: 'Deliver again from a time or an event on',
        params: IdParams,
        body: Replay,
        response: { 200: ReplayedWebhook, 404: ErrorOf(ERRORS.webhookNotFound) },
      },
    },
    async request => {
      const { params, body } = request.validatedData
      const { webhook, removedBefore } = await webhooks.replay(params.id, body.from, adminActor(request))
      return {
        ...serialize(webhook),
        removedBefore: removedBefore === null ? null : new Date(removedBefore).toISOString(),
      }
    },
  )
}

export default webhookRoutes
