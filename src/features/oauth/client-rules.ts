/** What the metadata of a client must be as a whole. Schemas have checked each field. */
import { ServiceError } from '#base/errors'
import { type ClientMetadata, DEVICE_CODE, isPublic } from './client.ts'
import { areUsable } from './client-keys.ts'
import { ERRORS } from './definitions.ts'
import { isOfDevice } from './redirect-uris.ts'

type Rule = readonly [isBroken: boolean, error: keyof typeof ERRORS]

const rulesOf = (client: ClientMetadata): readonly Rule[] => {
  const { grantTypes, redirectUris, adminScopes, jwks, jwksUri, authMethod, firstParty, requirePkce } = client
  const [hasCode, hasRefresh, isMachine, isDevice] = (
    ['authorization_code', 'refresh_token', 'client_credentials', DEVICE_CODE] as const
  ).map(type => grantTypes.includes(type)) as [boolean, boolean, boolean, boolean]
  return [
    [hasCode && redirectUris.length === 0, 'redirectUriRequired'],
    [!hasCode && redirectUris.length > 0, 'redirectUriUnused'],
    [hasRefresh && !hasCode && !isDevice, 'refreshWithoutCode'],
    [isMachine && isPublic(client), 'machineWithoutSecret'],
    [!isMachine && adminScopes.length > 0, 'adminScopesUnused'],
    [jwks !== null && jwksUri !== null, 'keysTwice'],
    [(authMethod === 'private_key_jwt') !== (jwks !== null || jwksUri !== null), 'keysOfClient'],
    [!areUsable(jwks), 'keysUnusable'],
    [firstParty && redirectUris.some(isOfDevice), 'firstPartyOnDevice'],
    [!requirePkce && isPublic(client), 'pkceOfPublicClient'],
  ]
}

/** @throws {ServiceError} for the first rule that is broken. */
export const assertClient = (client: ClientMetadata): void => {
  const broken = rulesOf(client).find(([isBroken]) => isBroken)
  if (broken !== undefined) throw new ServiceError(ERRORS[broken[1]])
}
