/** The cookie with the secret of a flow, which binds a callback to the browser that began it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { FLOW_LIFETIME } from '../provider-sign-ins.ts'

const NAME = 'OIDC_FLOW'

/** Sent to the routes of one provider only: the callback, and the page behind it. `lax`, because another site leads to the callback. */
const attributesOf = ({ server }: FastifyRequest, provider: string) =>
  ({
    httpOnly: true,
    sameSite: 'lax',
    path: `${new URL(server.config.publicUrl).pathname.replace(/\/$/, '')}/account/sign-in/providers/${provider}`,
    secure: server.config.isProduction,
    signed: false,
  }) as const

export const setFlow = (reply: FastifyReply, provider: string, flow: string): FastifyReply =>
  reply.setCookie(NAME, flow, { ...attributesOf(reply.request, provider), maxAge: FLOW_LIFETIME / 1_000 })

export const clearFlow = (reply: FastifyReply, provider: string): FastifyReply =>
  reply.clearCookie(NAME, attributesOf(reply.request, provider))

/** @returns `''`, which no flow has, without the cookie. */
export const flowOf = ({ cookies }: FastifyRequest): string => cookies[NAME] ?? ''
