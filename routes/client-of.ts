import type { FastifyRequest } from 'fastify'
import type { SessionClient } from '../src/auth/session.ts'

/** What a session's owner recognises it by. */
export const clientOf = ({ clientAddress, headers }: FastifyRequest): SessionClient => ({
  ip: clientAddress,
  userAgent: headers['user-agent'] ?? null,
})
