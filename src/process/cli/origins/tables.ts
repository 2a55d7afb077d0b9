/** Systems whose export is a table: each user is a row of CSV, or a line or list of JSON with the names of the columns. */
import { type Foreign, isTrue, mapped, namesOf, type Origin, textOf, unpadded } from './origin.ts'

const lines = (value: unknown): readonly string[] =>
  (textOf(value) ?? '').split(/[\s,|;]+/).filter(each => each !== '')

/** Clerk: the CSV that its dashboard exports. */
export const clerk: Origin = {
  title: 'Clerk',
  mapper: () => user => {
    const email = textOf(user.primary_email_address)
    const hasher = textOf(user.password_hasher)
    const digest = textOf(user.password_digest)
    const isKnown =
      hasher === undefined || /^(?:bcrypt|argon2i|argon2id|pbkdf2|scrypt_firebase|phpass)/.test(hasher)
    return mapped(
      {
        id: user.id,
        email,
        emailVerified: email !== undefined && lines(user.verified_email_addresses).includes(email),
        passwordHash: isKnown ? digest : undefined,
        firstName: user.first_name,
        lastName: user.last_name,
        totpSecret: textOf(user.totp_secret),
      },
      {
        usernames: user.username,
        'phone numbers': user.primary_phone_number,
        'further e-mails': lines(user.verified_email_addresses).some(each => each !== email),
        'passwords with an unknown algorithm': digest !== undefined && !isKnown,
      },
    )
  },
}

const SCRYPT = /^scrypt\$(\d+)\$([^$]+)\$(\d+)\$(\d+)\$([^$]+)$/

/** Django puts the name of the algorithm before hashes that have a form of their own; its scrypt becomes PHC. */
const djangoHash = (encoded: string | undefined): string | undefined => {
  if (encoded === undefined || encoded.startsWith('!')) return undefined
  if (encoded.startsWith('argon2$')) return encoded.slice('argon2'.length)
  if (encoded.startsWith('bcrypt$')) return encoded.slice('bcrypt$'.length)
  const [matched, cost, salt = '', blockSize, parallelism, digest = ''] = SCRYPT.exec(encoded) ?? []
  if (matched === undefined) return encoded
  const phcSalt = unpadded(Buffer.from(salt).toString('base64'))
  return `$scrypt$ln=${Math.log2(Number(cost))},r=${blockSize},p=${parallelism}$${phcSalt}$${unpadded(digest)}`
}

/** Django: `manage.py dumpdata auth.user`, as JSON or lines of JSON. A user model of your own has the same fields under another name. */
export const django: Origin = {
  title: 'Django',
  mapper: () => row => {
    const user: Foreign = row.fields ?? row
    const password = textOf(user.password)
    return mapped(
      {
        id: row.pk ?? row.id,
        email: user.email,
        disabled: user.is_active !== undefined && !isTrue(user.is_active),
        passwordHash: djangoHash(password),
        firstName: user.first_name,
        lastName: user.last_name,
        roles: [
          ...(isTrue(user.is_staff) ? ['staff'] : []),
          ...(isTrue(user.is_superuser) ? ['superuser'] : []),
        ],
        createdAt: user.date_joined,
        lastRequestAt: user.last_login,
      },
      {
        usernames: textOf(user.username) !== undefined && user.username !== user.email,
        'groups and permissions': (user.groups?.length ?? 0) + (user.user_permissions?.length ?? 0) > 0,
      },
    )
  },
}

/** WordPress: `wp user list --fields=… --format=csv` or `json`. */
export const wordpress: Origin = {
  title: 'WordPress',
  mapper: () => user =>
    mapped(
      {
        id: user.ID,
        email: user.user_email,
        passwordHash: textOf(user.user_pass),
        ...namesOf(user.display_name),
        ...(textOf(user.first_name) && { firstName: user.first_name }),
        ...(textOf(user.last_name) && { lastName: user.last_name }),
        roles: lines(user.roles),
        createdAt: user.user_registered,
      },
      { usernames: textOf(user.user_login) !== undefined && user.user_login !== user.user_email },
    ),
}

/** Devise (Ruby on Rails): the table of users as CSV. A pepper is not known here. */
export const devise: Origin = {
  title: 'Devise',
  mapper: () => user =>
    mapped(
      {
        id: user.uuid ?? user.id,
        email: user.email,
        emailVerified: textOf(user.confirmed_at) !== undefined,
        disabled: textOf(user.locked_at) !== undefined || textOf(user.deleted_at) !== undefined,
        passwordHash: textOf(user.encrypted_password),
        ...namesOf(user.name),
        ...(textOf(user.first_name) && { firstName: user.first_name }),
        ...(textOf(user.last_name) && { lastName: user.last_name }),
        locale: user.locale,
        createdAt: user.created_at,
        updatedAt: user.updated_at,
        lastRequestAt: user.current_sign_in_at ?? user.last_sign_in_at,
        lacksSecondStep: isTrue(user.otp_required_for_login),
      },
      { usernames: user.username, 'identities of providers': textOf(user.provider) && textOf(user.uid) },
    ),
}

/** ASP.NET Identity: the table `AspNetUsers` as CSV. */
export const aspnet: Origin = {
  title: 'ASP.NET Identity',
  mapper: () => user => {
    const hash = textOf(user.PasswordHash)
    const lockout = textOf(user.LockoutEnd)
    return mapped(
      {
        id: user.Id,
        email: user.Email,
        emailVerified: isTrue(user.EmailConfirmed),
        disabled: lockout !== undefined && Date.parse(lockout) > Date.now(),
        passwordHash: hash === undefined || hash === 'NULL' ? undefined : `{aspnet}${hash}`,
        lacksSecondStep: isTrue(user.TwoFactorEnabled),
      },
      {
        usernames: textOf(user.UserName) !== undefined && user.UserName !== user.Email,
        'phone numbers': textOf(user.PhoneNumber) !== undefined && user.PhoneNumber !== 'NULL',
      },
    )
  },
}
