import type { FastifyRequest } from 'fastify'
import type { SessionClient } from '../src/auth/session.ts'

/** What a session's owner recognises it by. */
export const clientOf = ({ ip, headers }: FastifyRequest): SessionClient => ({
  ip,
  userAgent: headers['user-agent'] ?? null,
})
