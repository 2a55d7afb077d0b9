/**
 * Supabase: the table `auth.users` as CSV, or as lines of JSON (`row_to_json`), which can also have the rows of `auth.identities` and
 * `auth.mfa_factors` of the user.
 */
import { identityOf, isTrue, listOf, mapped, type Origin, objectOf, textOf, timeOf } from './origin.ts'

const OWN_PROVIDERS = new Set(['email', 'phone'])

export const supabase: Origin = {
  title: 'Supabase',
  mapper: () => user => {
    const app = objectOf(user.raw_app_meta_data)
    const own = objectOf(user.raw_user_meta_data)
    const rows = listOf(user.identities).filter(({ provider }) => !OWN_PROVIDERS.has(provider))
    const identities = rows.map(each =>
      identityOf(each.provider, each.provider_id ?? each.id, objectOf(each.identity_data)?.email),
    )
    const factors = listOf(user.factors).filter(({ status }) => status === 'verified')
    const totp = factors.find(each => each.factor_type === 'totp')
    const bannedUntil = timeOf(user.banned_until)
    const { provider: _, providers: __, ...appMetadata } = app ?? {}
    const {
      sub,
      email,
      email_verified,
      phone_verified,
      first_name,
      last_name,
      full_name,
      name,
      ...userMetadata
    } = own ?? {}
    const [first = '', ...rest] = (textOf(full_name) ?? textOf(name) ?? '').split(/\s+/)
    return mapped(
      {
        id: user.id,
        email: user.email,
        emailVerified: (timeOf(user.email_confirmed_at) ?? timeOf(user.confirmed_at)) !== undefined,
        disabled:
          textOf(user.deleted_at) !== undefined ||
          (bannedUntil !== undefined && Date.parse(bannedUntil) > Date.now()),
        passwordHash: textOf(user.encrypted_password),
        firstName: textOf(first_name) ?? first,
        lastName: textOf(last_name) ?? rest.join(' '),
        userMetadata,
        appMetadata,
        createdAt: user.created_at,
        updatedAt: user.updated_at,
        lastRequestAt: user.last_sign_in_at,
        identities: identities.filter(each => each !== null),
        totpSecret: textOf(totp?.secret),
        lacksSecondStep: factors.length > 0 && totp === undefined,
      },
      {
        'phone numbers': user.phone,
        'identities of providers whose issuer is not known': identities.includes(null),
        'single sign-on by SAML': isTrue(user.is_sso_user),
      },
    )
  },
}
