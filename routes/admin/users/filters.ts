/** Filters of the admin's list of users. */
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { FILTERS, filterFieldsIn } from '#core/users/fields'
import { MAX_IDS, parseIds, type UserFilter } from '#core/users/listing'
import { earlierThan, laterThan } from '#http/validation/formats'
import { KnownEmail, Role, TimeFilter } from '../../schemas.ts'

/** Last requests are written in batches: the service knows newer ones than the store. */
const AS_STORED = 'Compares the stored time, which is up to a second old'

export const filterProperties = {
  email: Type.Optional(KnownEmail),
  disabled: Type.Optional(Type.Boolean()),
  role: Type.Optional(Role),
  ...Object.fromEntries(
    FILTERS.map(({ field, schema }) => [
      field,
      Type.Optional(Type.Unsafe<string>({ ...schema, type: 'string' })),
    ]),
  ),
  ids: Type.Optional(
    Type.String({
      idList: MAX_IDS,
      description: `Up to ${MAX_IDS} ids with commas between them, in any letter case; unknown ids are ignored`,
    }),
  ),
  createdAfter: TimeFilter('Strictly later. ISO 8601 with a time zone; in a URL its `+` is written `%2B`'),
  createdBefore: TimeFilter('Strictly earlier'),
  lastRequestAfter: TimeFilter(`Strictly later; excludes users without a request. ${AS_STORED}`),
  lastRequestBefore: TimeFilter(
    `Users who signed up before this time and have made no request since, or never made one. ${AS_STORED}`,
  ),
}

type FilterQuery = Static<TObject<typeof filterProperties>> & Pick<UserFilter, 'search'>

export const toFilter = ({
  search,
  email,
  disabled,
  role,
  ids,
  createdAfter,
  createdBefore,
  lastRequestAfter,
  lastRequestBefore,
  ...others
}: FilterQuery): UserFilter => ({
  searchEmail: true,
  ...(search !== undefined && { search }),
  ...(email !== undefined && { email }),
  ...(disabled !== undefined && { disabled }),
  ...(role !== undefined && { role }),
  fields: filterFieldsIn(others),
  ...(ids !== undefined && { ids: parseIds(ids) }),
  ...(createdAfter !== undefined && { createdAfter: laterThan(createdAfter) }),
  ...(createdBefore !== undefined && { createdBefore: earlierThan(createdBefore) }),
  ...(lastRequestAfter !== undefined && { lastRequestAfter: laterThan(lastRequestAfter) }),
  ...(lastRequestBefore !== undefined && { lastRequestBefore: earlierThan(lastRequestBefore) }),
})
