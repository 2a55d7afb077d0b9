/** Turns entities into response bodies. */
import type { Static } from '@sinclair/typebox'
import type { FastifyReply } from 'fastify'
import { issuedAtIn, organizationIn } from '#core/auth/access-tokens'
import type { CachedUser, Principal } from '#core/auth/principal'
import { accountTextOf, toIso } from '#core/users/serializers'
import type { Status as ServiceStatus } from '#process/status-report'
import { etagOf } from './response-headers.ts'
import type { Introspection, Status } from './schemas.ts'

export { serializeMethod, serializeSession } from '#core/accounts/serializers'
export { serializeEvent, serializeOwnEvent } from '#core/audit-log/event'
export { serializeAccount, serializeAdminUser, serializeProfile } from '#core/users/serializers'

const INACTIVE = { active: false } as const

const seconds = (timestamp: number): number => Math.floor(timestamp / 1_000)

export const serializeStatus = ({ startedAt, ...status }: ServiceStatus): Static<typeof Status> => ({
  ...status,
  startedAt: toIso(Math.floor(startedAt)),
})

/** @param allScopes what a session allows, separated by spaces. */
export const serializeIntrospection = (
  principal: Principal | null,
  allScopes: string,
): Static<typeof Introspection> => {
  if (principal === null) return INACTIVE
  const { token, cachedUser, credentialId, client, scopes, amr, authenticatedAt, impersonatedBy, expiresAt } =
    principal
  const { id, roles } = cachedUser.user
  const scope = scopes === null ? allScopes : scopes.join(' ')
  const response: Static<typeof Introspection> = { active: true, token_type: 'Bearer', sub: id, scope, roles }
  if (Number.isFinite(expiresAt)) response.exp = seconds(expiresAt)
  if (scopes === null && impersonatedBy === null) response.iat = issuedAtIn(token)
  if (authenticatedAt > 0) response.auth_time = seconds(authenticatedAt)
  if (amr.length > 0) response.amr = amr
  if (scopes === null) response.sid = credentialId
  else response.jti = credentialId
  if (client !== null) response.client_id = client.id
  const organization = client === null ? null : organizationIn(token)
  if (organization !== null) response.org = organization
  if (impersonatedBy !== null) response.act = { sub: impersonatedBy }
  return response
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends the text of a JSON response, so that health checks of an idle service do not load the library that serializes by schemas. */
export const sendJson = (reply: FastifyReply, text: string): FastifyReply => reply.type(JSON_TYPE).send(text)

/** Sends {@link serializeAccount} of a cached user. Its JSON is cached too, except for the timestamp of the last request. */
export const sendAccount = (reply: FastifyReply, cachedUser: CachedUser): void => {
  cachedUser.accountText ??= accountTextOf(cachedUser.user)
  reply
    .header('cache-control', 'no-store')
    .header('etag', etagOf(cachedUser.user))
    .type(JSON_TYPE)
    .send(`${cachedUser.accountText}"${toIso(cachedUser.lastRequestAt)}"}`)
}
