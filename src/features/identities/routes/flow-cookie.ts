/** The cookie with the secret of a flow, which binds a callback to the browser that began it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { FLOW_LIFETIME } from '../provider-sign-ins.ts'

/** One for each provider, so that flows of several do not replace each other. */
const nameOf = (provider: string): string => `OIDC_FLOW_${provider}`

/** `lax`, because another site leads to the callback. */
export const setFlow = (reply: FastifyReply, provider: string, flow: string): FastifyReply =>
  reply.setHostCookie(nameOf(provider), flow, { sameSite: 'lax', maxAge: FLOW_LIFETIME / 1_000 })

export const clearFlow = (reply: FastifyReply, provider: string): FastifyReply =>
  reply.clearHostCookie(nameOf(provider))

/** @returns `''`, which no flow has, without the cookie. */
export const flowOf = (request: FastifyRequest, provider: string): string =>
  request.hostCookie(nameOf(provider)) ?? ''
