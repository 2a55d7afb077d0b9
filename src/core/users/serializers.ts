/** Users as JSON, for HTTP and the command line. Timestamps are ISO 8601 in UTC. */
import { compileFields, type FieldValues, PROFILE_FIELDS, type ProfileField } from './fields.ts'
import { methodsOf, type User } from './user.ts'

let lastTimestamp = Number.NaN
let lastText = ''

/** A timestamp in ISO 8601. Under load dozens of requests share a millisecond, so the last result is cached. */
export const toIso = (timestamp: number): string => {
  if (timestamp !== lastTimestamp) {
    lastText = new Date(timestamp).toISOString()
    lastTimestamp = timestamp
  }
  return lastText
}

export const toIsoOrNull = (timestamp: number | null): string | null =>
  timestamp === null ? null : toIso(timestamp)

/** ETags carry the version. */
type SerializableUser = Omit<User, 'version'>

const fieldsOf = compileFields<[SerializableUser], FieldValues>(
  'user',
  ({ field }) => `${field}: user.${field}`,
)

const profileFieldsOf = compileFields<[User], Pick<FieldValues, ProfileField>>(
  'user',
  ({ field }) => `${field}: user.${field}`,
  PROFILE_FIELDS,
)

export const serializeAccount = (user: SerializableUser, lastRequestAt = user.lastRequestAt) => ({
  id: user.id,
  email: user.email,
  emailVerified: user.emailVerified,
  ...fieldsOf(user),
  createdAt: new Date(user.createdAt).toISOString(),
  updatedAt: new Date(user.updatedAt).toISOString(),
  lastRequestAt: toIsoOrNull(lastRequestAt),
})

/** The JSON of {@link serializeAccount} up to `lastRequestAt`, the last property. A copy, because every response would copy a slice. */
export const accountTextOf = (user: User): string =>
  Buffer.from(JSON.stringify(serializeAccount(user, null)).slice(0, -'null}'.length)).toString()

export const serializeAdminUser = (user: SerializableUser, lastRequestAt = user.lastRequestAt) => ({
  ...serializeAccount(user, lastRequestAt),
  disabled: user.disabled,
  factors: user.factors,
  methods: methodsOf(user),
})

/** A user in JSON, for other users: without the e-mail. */
export const serializeProfile = (user: User) => ({
  id: user.id,
  ...profileFieldsOf(user),
  createdAt: new Date(user.createdAt).toISOString(),
})
