/** The errors, events, settings, scopes and limits of the authorization server, which its use cases need. `feature.ts` declares the feature. */
import { Type } from '@sinclair/typebox'
import { allowedHosts } from '#base/http-client/http-client'
import { type DepsOf, defineErrors, duration, oneOf } from '#feature/declaration'
import { changeMail } from '#feature/mails'
import { MAX_CLIENTS } from './client.ts'
import { metadataHosts } from './metadata-urls.ts'
import { MAX_RESOURCES } from './resource.ts'
import { rsaKey } from './rsa-key.ts'
import { storedOAuth } from './stored-oauth.ts'

const IS_URI = 'must be an absolute URI such as https://api.example.com, without a fragment'

export const ERRORS = defineErrors({
  redirectUriRequired: {
    status: 400,
    field: 'redirectUris',
    message: 'must have at least one URI for the grant type authorization_code',
  },
  redirectUriUnused: {
    status: 400,
    field: 'redirectUris',
    message: 'must be empty without the grant type authorization_code',
  },
  refreshWithoutCode: {
    status: 400,
    field: 'grantTypes',
    message: 'must have authorization_code or the type of device codes beside refresh_token',
  },
  machineWithoutSecret: {
    status: 400,
    field: 'authMethod',
    message: 'must not be none with the grant type client_credentials',
  },
  adminScopesUnused: {
    status: 400,
    field: 'adminScopes',
    message: 'must be empty without the grant type client_credentials',
  },
  algorithmWithoutKey: {
    status: 400,
    field: 'idTokenAlgorithm',
    message: 'must be RS256, or the algorithm of a key of access tokens of the service',
  },
  keysUnusable: {
    status: 400,
    field: 'jwks',
    message: 'must be keys for signatures: RSA of at least 2048 bits, P-256 or Ed25519',
  },
  keysOfClient: {
    status: 400,
    field: 'jwks',
    message: 'must have the public keys of a client that authenticates with private_key_jwt, and of no other',
  },
  keysTwice: { status: 400, field: 'jwksUri', message: 'must not be given beside jwks' },
  keysUriBlocked: {
    status: 400,
    field: 'jwksUri',
    message: 'must begin with https:// and lead to public addresses, unless OAUTH_ALLOWED_HOSTS has its host',
  },
  keysUriUnresolved: { status: 400, field: 'jwksUri', message: 'has a host that has no address' },
  firstPartyOnDevice: {
    status: 400,
    field: 'firstParty',
    message: 'must be false unless every redirect URI begins with https://',
  },
  pkceOfPublicClient: {
    status: 400,
    field: 'requirePkce',
    message: 'must be true for a client without a secret',
  },
  identifierInvalid: { status: 400, field: 'identifier', message: IS_URI },
  identifierOfService: {
    status: 400,
    field: 'identifier',
    message: 'must not be JWT_AUDIENCE or PUBLIC_URL, which stand for this service',
  },
  invalidClient: { status: 401, message: 'The client is not known, or its authentication is wrong' },
  invalidRequest: { status: 400, message: 'The request is not valid' },
  invalidScope: { status: 400, field: 'scope', message: 'has no scope that the client may have' },
  invalidTarget: { status: 400, field: 'resource', message: 'must be the identifier of a resource' },
  invalidOrganization: {
    status: 400,
    field: 'organization',
    message: 'must be an organization of the user, within what the user has granted',
  },
  severalResources: { status: 400, field: 'resource', message: 'must be given once' },
  invalidGrant: {
    status: 400,
    message: 'The code or refresh token is not valid, has expired, or was issued to another client',
  },
  invalidToken: { status: 401, message: 'The access token is not one of a grant, or it is not valid' },
  openidRequired: { status: 403, message: 'The access token has not the scope openid' },
  unknownClient: { status: 400, field: 'client_id', message: 'is not the id of a client' },
  unknownRedirectUri: {
    status: 400,
    field: 'redirect_uri',
    message: 'is not a redirect URI of the client',
  },
  unknownUserCode: {
    status: 400,
    field: 'user_code',
    message: 'is not the code of a device that waits: check it, or begin again at the device',
  },
  authorizationPending: { status: 400, message: 'The user has not decided yet' },
  slowDown: { status: 400, message: 'The device asks too often: wait five seconds longer' },
  accessDenied: { status: 400, message: 'The user has denied it' },
  expiredToken: { status: 400, message: 'The device code has expired: begin again' },
  unknownRequestUri: {
    status: 400,
    field: 'request_uri',
    message: 'is not one of the client that waits: begin again at the application',
  },
  invalidProof: {
    status: 400,
    message:
      'The proof of possession in the header DPoP is not valid for this request, or it was used before',
  },
  proofNonceRequired: {
    status: 400,
    message: 'The proof of possession needs the nonce of the header DPoP-Nonce',
  },
  unknownLogoutUri: {
    status: 400,
    field: 'post_logout_redirect_uri',
    message: 'is not one that the client has registered, or the request names no client',
  },
  invalidHint: { status: 400, field: 'id_token_hint', message: 'is not an ID token of the client' },
  unauthorizedClient: {
    status: 400,
    field: 'grant_type',
    message: 'is not one that the client is registered for',
  },
  unsupportedGrantType: { status: 400, field: 'grant_type', message: 'is not supported' },
  grantNotFound: { status: 404, message: 'There is no such grant' },
  requestNotFound: {
    status: 404,
    message: 'This request has expired, or was decided already: begin again at the application',
  },
  clientMetadataInvalid: { status: 400, message: 'The metadata of the client is not valid' },
  registrationOfDevice: {
    status: 400,
    field: 'redirect_uris',
    message: 'must lead to a program on the device of the user, such as http://127.0.0.1/callback',
  },
  registrationWithSecret: {
    status: 400,
    field: 'token_endpoint_auth_method',
    message: 'must be none: a program on the device of a user keeps no secret',
  },
  registrationKeyRequired: {
    status: 401,
    message: 'Registration needs a valid admin key as Bearer token',
  },
  registrationScopeRequired: { status: 403, message: 'The admin key has not the scope clients:register' },
  registrationOff: { status: 403, message: 'Clients cannot register themselves: ask an administrator' },
  clientNotFound: { status: 404, message: 'There is no such client' },
  resourceNotFound: { status: 404, message: 'There is no such resource' },
  clientOfDocument: {
    status: 409,
    message: 'The metadata of this client are in its document: only blocked can be changed',
  },
  clientChanged: { status: 409, message: 'The client was changed at the same time: read it and try again' },
  clientWithoutSecret: { status: 409, message: 'The client has no secret: it authenticates otherwise' },
  tooManyClients: { status: 409, message: `There are ${MAX_CLIENTS} clients: delete one first` },
  resourceChanged: {
    status: 409,
    message: 'The resource was changed at the same time: read it and try again',
  },
  tooManyResources: { status: 409, message: `There are ${MAX_RESOURCES} resources: delete one first` },
  identifierTaken: { status: 409, field: 'identifier', message: 'is already taken' },
})

const OfClientName = {
  places: ({ client }: { readonly client: string }) => ({ client }),
  example: { client: 'Planner' },
}

const MAILS = {
  /** The name is what the client says of itself. */
  clientConnected: {
    ...changeMail(
      {
        subject: 'An application is connected to your account',
        text: 'An application that calls itself “{client}” has access to your account at {product} now. Nobody at {product} has checked who it is.',
        ifNotYou: 'end its access on the page of your account, and choose a new password',
      },
      {
        subject: 'Eine Anwendung ist mit Ihrem Konto verbunden',
        text: 'Eine Anwendung, die sich „{client}“ nennt, hat jetzt Zugriff auf Ihr Konto bei {product}. Niemand bei {product} hat geprüft, wer sie ist.',
        ifNotYou: 'beenden Sie ihren Zugriff auf der Seite Ihres Kontos, und wählen Sie ein neues Passwort',
      },
    ),
    ...OfClientName,
  },
  grantReused: {
    ...changeMail(
      {
        subject: 'The access of an application has ended',
        text: 'The application {client} has no access to your account at {product} any more: somebody used a credential of it that had been replaced, so it may have been stolen. Connect the application again if you use it.',
      },
      {
        subject: 'Der Zugriff einer Anwendung ist beendet',
        text: 'Die Anwendung {client} hat keinen Zugriff mehr auf Ihr Konto bei {product}: Jemand hat Zugangsdaten von ihr verwendet, die schon ersetzt waren, vielleicht gestohlene. Verbinden Sie die Anwendung neu, wenn Sie sie verwenden.',
      },
    ),
    ...OfClientName,
  },
}

const client = Type.String({ description: 'The id of the client' })
const OfClient = Type.Object({ client })
const OfResource = Type.Object({ resource: Type.String({ description: 'The id of the resource' }) })
const grant = Type.String({ description: 'The id of the grant' })
const OfGrant = Type.Object({ grant })
const OfGrantAndClient = Type.Object({ grant, client })

export const definitions = {
  ...storedOAuth,
  errors: ERRORS,
  mails: MAILS,
  events: {
    'client.created': OfClient,
    'client.changed': OfClient,
    'client.secret-rotated': OfClient,
    'client.deleted': OfClient,
    'resource.created': OfResource,
    'resource.changed': OfResource,
    'resource.deleted': OfResource,
    'grant.created': OfGrantAndClient,
    'grant.revoked': OfGrant,
    'grant.reused': OfGrantAndClient,
    'device.approved': OfClient,
  },
  adminScopes: {
    'clients:read': 'List and read clients and resources of the authorization server',
    'clients:write': 'Create, change and delete clients and resources',
    'clients:register': 'Register clients by OAuth, which users are asked about',
    'clients:trust': 'Exempt clients from the consent of users, and from PKCE',
  },
  settings: {
    OAUTH: {
      read: oneOf('off', 'on'),
      default: 'off',
      shown: true,
      description: 'Whether other applications and programs get access by OAuth',
    },
    OAUTH_REGISTRATION: {
      read: oneOf('off', 'token', 'loopback'),
      default: 'off',
      shown: true,
      description:
        'whether clients can register themselves: `token` with an admin key, `loopback` without one, for programs on devices of users',
    },
    OAUTH_METADATA_CLIENTS: {
      read: metadataHosts,
      default: '',
      shown: true,
      description:
        'hosts of clients whose id is the URL of their metadata, such as app.example.com; `*` for all',
    },
    OAUTH_ACCESS_TOKEN: {
      read: duration('60s', '1d'),
      default: '1h',
      shown: true,
      description: 'Lifetime of access tokens of clients',
    },
    OAUTH_GRANT: {
      read: duration('1h'),
      default: '180d',
      shown: true,
      description: 'Time after which a user must grant access to a client again',
    },
    OAUTH_GRANT_IDLE: {
      read: duration('1h'),
      default: '30d',
      shown: true,
      description: 'Time without a refresh after which a grant ends',
    },
    OAUTH_RSA_KEY: {
      read: rsaKey,
      default: null,
      canBeFile: true,
      description:
        'RSA key that signs ID tokens, as PKCS#8 PEM; needed on PostgreSQL, generated beside the SQLite file',
    },
    OAUTH_RSA_KEY_PREVIOUS: {
      read: rsaKey,
      default: null,
      canBeFile: true,
      description: 'a further RSA key; it is only published',
    },
    OAUTH_ALLOWED_HOSTS: {
      read: allowedHosts,
      default: '',
      shown: true,
      description:
        'Hosts of clients that may have private addresses and plain HTTP, such as localhost:4000, separated by commas',
    },
    OAUTH_REFRESH_WINDOW: {
      read: duration('1s', '10m'),
      default: '60s',
      shown: true,
      description: 'Time for which a refresh token of a client without a secret is not replaced',
    },
  },
  rateLimits: {
    // Programs behind one address share it: a token of a client costs a signature, and no row.
    'oauth-token': { points: 1_200, seconds: 60 },
    // Each is a row for ten minutes.
    'oauth-authorize': { points: 60, seconds: 60 },
    // Each is a row for a month.
    'oauth-register': { points: 20, seconds: 600 },
    'oauth-device': { points: 60, seconds: 60 },
  },
} as const

export type OAuthDeps = DepsOf<typeof definitions>
