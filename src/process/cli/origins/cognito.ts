/** Amazon Cognito: the JSON of `aws cognito-idp list-users`. Cognito exports no hashes: users reset their passwords. */
import { isTrue, listOf, mapped, namesOf, type Origin } from './origin.ts'

export const cognito: Origin = {
  title: 'Cognito',
  listIn: 'Users',
  mapper: () => user => {
    const attributes = new Map(listOf(user.Attributes).map(({ Name, Value }) => [Name, Value]))
    const own = [...attributes].flatMap(([name, value]) =>
      String(name).startsWith('custom:') ? [[String(name).slice('custom:'.length), value] as const] : [],
    )
    return mapped(
      {
        id: attributes.get('sub'),
        email: attributes.get('email'),
        emailVerified: isTrue(attributes.get('email_verified')),
        disabled: user.Enabled === false,
        ...namesOf(attributes.get('name')),
        ...(attributes.has('given_name') && { firstName: attributes.get('given_name') }),
        ...(attributes.has('family_name') && { lastName: attributes.get('family_name') }),
        locale: attributes.get('locale'),
        userMetadata: own.length === 0 ? undefined : Object.fromEntries(own),
        createdAt: user.UserCreateDate,
        updatedAt: user.UserLastModifiedDate,
      },
      {
        'passwords, which Cognito does not export': user.UserStatus !== 'EXTERNAL_PROVIDER',
        'phone numbers': attributes.get('phone_number'),
        'identities of providers': attributes.get('identities'),
        'second steps': listOf(user.MFAOptions).length > 0,
      },
    )
  },
}
