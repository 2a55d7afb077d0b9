/**
 * Firebase: the JSON of `firebase auth:export users.json`, and as `--hash-parameters` the project's parameters, as the console shows them
 * ("Password hash parameters").
 */
import {
  type Foreign,
  identityOf,
  isTrue,
  listOf,
  mapped,
  namesOf,
  type Origin,
  OriginError,
  objectOf,
  textOf,
} from './origin.ts'

interface Parameters {
  readonly signerKey: string
  readonly saltSeparator: string
  readonly rounds: string
  readonly memoryCost: string
}

/** URL-safe base64 as standard base64: the export has the one, the console the other. */
const standard = (base64: string): string => base64.replaceAll('-', '+').replaceAll('_', '/')

/** @throws {OriginError} */
const parametersIn = (text: string): Parameters => {
  const found = (name: string): string | undefined =>
    new RegExp(`"?\\b${name}"?\\s*[:=]\\s*"?([\\w+/=-]+)`).exec(text)?.[1]
  const [signerKey, saltSeparator, rounds, memoryCost] = [
    'base64_signer_key',
    'base64_salt_separator',
    'rounds',
    'mem_cost',
  ].map(found)
  if (
    !signerKey ||
    saltSeparator === undefined ||
    !/^\d+$/.test(rounds ?? '') ||
    !/^\d+$/.test(memoryCost ?? '')
  )
    throw new OriginError(
      '--hash-parameters must have base64_signer_key, base64_salt_separator, rounds and mem_cost, as the console of Firebase shows them',
    )
  return { signerKey, saltSeparator, rounds: rounds as string, memoryCost: memoryCost as string }
}

const hashOf = ({ signerKey, saltSeparator, rounds, memoryCost }: Parameters, user: Foreign): string =>
  `$fbscrypt$v=1,n=${memoryCost},r=${rounds},p=1,ss=${standard(saltSeparator)},sk=${standard(signerKey)}$${standard(user.salt)}$${standard(user.passwordHash)}`

export const firebase: Origin = {
  title: 'Firebase',
  listIn: 'users',
  needsParameters: true,
  mapper({ parameters }) {
    const known = parameters === null ? null : parametersIn(parameters)
    return user => {
      const hasPassword = textOf(user.passwordHash) !== undefined && textOf(user.salt) !== undefined
      const accounts = listOf(user.providerUserInfo).filter(
        ({ providerId }) => providerId !== 'password' && providerId !== 'phone',
      )
      const identities = accounts.map(each => identityOf(each.providerId, each.rawId, each.email))
      return mapped(
        {
          id: user.localId,
          email: user.email,
          emailVerified: isTrue(user.emailVerified),
          disabled: isTrue(user.disabled),
          passwordHash: hasPassword && known !== null ? hashOf(known, user) : undefined,
          ...namesOf(user.displayName),
          appMetadata: objectOf(user.customAttributes),
          createdAt: user.createdAt,
          lastRequestAt: user.lastSignedInAt,
          identities: identities.filter(each => each !== null),
          lacksSecondStep: listOf(user.mfaInfo).length > 0,
        },
        {
          'phone numbers': user.phoneNumber,
          pictures: user.photoUrl,
          'passwords, because --hash-parameters is not given': hasPassword && known === null,
          'identities of providers whose issuer is not known': identities.includes(null),
        },
      )
    }
  },
}
