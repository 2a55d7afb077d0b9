/**
 * Auth0: the NDJSON of a users export job, and as `--hashes` the NDJSON with password hashes that Auth0's support sends. The hashes are those
 * of the database connections; each is found by the id of the user.
 */
import { type Foreign, identityOf, isTrue, listOf, mapped, type Origin, objectOf, textOf } from './origin.ts'

/** The prefix of the ids of a database connection. */
const DATABASE = 'auth0|'

export const auth0: Origin = {
  title: 'Auth0',
  hashIn(entry) {
    const { _id, passwordHash } = entry
    const id = textOf(typeof _id === 'object' ? _id?.$oid : (_id ?? entry.user_id))
    const hash = textOf(passwordHash)
    return id === undefined || hash === undefined ? null : [id.replace(DATABASE, ''), hash]
  },
  mapper:
    ({ hashOf }) =>
    (user: Foreign) => {
      const id = textOf(user.user_id) ?? textOf(user.Id)
      const identities = listOf(user.identities).filter(({ provider }) => provider !== 'auth0')
      const known = identities.map(each => identityOf(each.provider, each.user_id, each.profileData?.email))
      return mapped(
        {
          id,
          email: user.email ?? user.Email,
          emailVerified: isTrue(user.email_verified ?? user['Email Verified']),
          disabled: isTrue(user.blocked),
          passwordHash: id === undefined ? undefined : hashOf(id.replace(DATABASE, '')),
          firstName: user.given_name,
          lastName: user.family_name,
          locale: user.locale,
          userMetadata: objectOf(user.user_metadata),
          appMetadata: objectOf(user.app_metadata),
          createdAt: user.created_at,
          updatedAt: user.updated_at,
          lastRequestAt: user.last_login,
          identities: known.filter(each => each !== null),
          lacksSecondStep:
            listOf(user.guardian_authenticators).length > 0 || (user.multifactor?.length ?? 0) > 0,
        },
        {
          'phone numbers': user.phone_number,
          usernames: user.username,
          'identities of providers whose issuer is not known': known.includes(null),
        },
      )
    },
}
