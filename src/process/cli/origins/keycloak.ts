/** Keycloak: the JSON of `kc.sh export --realm <realm> --users realm_file` (or `same_file`, `different_files`), whose users are a list. */
import {
  type Foreign,
  identityOf,
  isTrue,
  listOf,
  mapped,
  type Origin,
  objectOf,
  unpadded,
} from './origin.ts'

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

const base32 = (bytes: Buffer): string => {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return (bits.match(/.{1,5}/g) ?? []).map(group => BASE32[Number.parseInt(group.padEnd(5, '0'), 2)]).join('')
}

/** In the forms that the import takes; `undefined` for an algorithm that it does not know. */
const hashOf = ({ secretData, credentialData }: Foreign): string | undefined => {
  const { value, salt } = objectOf(secretData) ?? {}
  const { algorithm, hashIterations, additionalParameters = {} } = objectOf(credentialData) ?? {}
  if (typeof value !== 'string' || typeof salt !== 'string' || typeof algorithm !== 'string') return undefined
  const tail = `${unpadded(salt)}$${unpadded(value)}`
  if (algorithm === 'argon2') {
    const { type = ['id'], memory = [], parallelism = ['1'], version = ['1.3'] } = additionalParameters
    return `$argon2${type[0]}$v=${version[0] === '1.0' ? 16 : 19}$m=${memory[0]},t=${hashIterations},p=${parallelism[0]}$${tail}`
  }
  const [, digest = 'sha1'] = /^pbkdf2(?:-(sha256|sha512))?$/.exec(algorithm) ?? [null, 'unknown']
  return digest === 'unknown' ? undefined : `$pbkdf2-${digest}$i=${hashIterations}$${tail}`
}

/** What the import takes: codes with SHA-1, six digits and 30 seconds. */
const totpSecretOf = ({ secretData, credentialData }: Foreign): string | undefined => {
  const { value } = objectOf(secretData) ?? {}
  const { subType, digits, period, algorithm, secretEncoding } = objectOf(credentialData) ?? {}
  const isUsual = subType === 'totp' && digits === 6 && period === 30 && algorithm === 'HmacSHA1'
  if (typeof value !== 'string' || !isUsual) return undefined
  return secretEncoding === 'BASE32' ? value : base32(Buffer.from(value))
}

export const keycloak: Origin = {
  title: 'Keycloak',
  listIn: 'users',
  mapper: () => user => {
    const credentials = listOf(user.credentials)
    const password = credentials.find(({ type }) => type === 'password')
    const codes = credentials.filter(({ type }) => type === 'otp')
    const [totpSecret] = codes.map(totpSecretOf).filter(secret => secret !== undefined)
    const passwordHash = password && hashOf(password)
    const federated = listOf(user.federatedIdentities)
    const identities = federated.map(each => identityOf(each.identityProvider, each.userId))
    const attributes = objectOf(user.attributes)
    const locale = attributes?.locale
    return mapped(
      {
        id: user.id,
        email: user.email,
        emailVerified: isTrue(user.emailVerified),
        disabled: user.enabled === false,
        passwordHash,
        firstName: user.firstName,
        lastName: user.lastName,
        locale: Array.isArray(locale) ? locale[0] : locale,
        roles: (Array.isArray(user.realmRoles) ? user.realmRoles : []).filter(
          (role: unknown): role is string =>
            typeof role === 'string' && !/^default-roles-|^offline_access$|^uma_authorization$/.test(role),
        ),
        userMetadata: attributes,
        createdAt: user.createdTimestamp,
        identities: identities.filter(each => each !== null),
        totpSecret,
        lacksSecondStep: codes.length > 0 && totpSecret === undefined,
      },
      {
        usernames: user.username !== undefined && user.username !== user.email,
        'passwords with an unknown algorithm': password !== undefined && passwordHash === undefined,
        'groups and roles of clients':
          listOf(user.groups).length > 0 || user.groups?.length > 0 || user.clientRoles,
        'passkeys (WebAuthn)': credentials.some(({ type }) => String(type).startsWith('webauthn')),
        'identities of providers whose issuer is not known': identities.includes(null),
      },
    )
  },
}
