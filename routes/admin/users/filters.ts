/** What an administrator's list of users is filtered by. */
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { MAX_IDS, parseIds, type UserFilter } from '../../../src/users/listing.ts'
import { earlierThan, laterThan } from '../../../src/validation/formats.ts'
import { KnownEmail } from '../../schemas.ts'

const Moment = (description: string) => Type.Optional(Type.String({ format: 'date-time', description }))

/** The service knows timestamps that the store has not been told of yet. */
const AS_STORED = 'Goes by what is stored, where the moment of a last request arrives within a second'

export const filterProperties = {
  email: Type.Optional(KnownEmail),
  disabled: Type.Optional(Type.Boolean()),
  ids: Type.Optional(
    Type.String({
      idList: MAX_IDS,
      description: `Up to ${MAX_IDS} ids with commas between them, in any letter case; whom nobody has is passed over`,
    }),
  ),
  createdAfter: Moment('Strictly later. ISO 8601 with a time zone; in a URL its `+` is written `%2B`'),
  createdBefore: Moment('Strictly earlier'),
  lastRequestAfter: Moment(`Strictly later; never who made no request. ${AS_STORED}`),
  lastRequestBefore: Moment(
    `Who signed up before this moment and has made no request since, or never made one. ${AS_STORED}`,
  ),
}

type Asked = Static<TObject<typeof filterProperties>> & Pick<UserFilter, 'search'>

export const toFilter = ({
  ids,
  createdAfter,
  createdBefore,
  lastRequestAfter,
  lastRequestBefore,
  ...others
}: Asked): UserFilter => ({
  ...others,
  searchEmail: true,
  ...(ids !== undefined && { ids: parseIds(ids) }),
  ...(createdAfter !== undefined && { createdAfter: laterThan(createdAfter) }),
  ...(createdBefore !== undefined && { createdBefore: earlierThan(createdBefore) }),
  ...(lastRequestAfter !== undefined && { lastRequestAfter: laterThan(lastRequestAfter) }),
  ...(lastRequestBefore !== undefined && { lastRequestBefore: earlierThan(lastRequestBefore) }),
})
