import { newFields } from '#core/users/fields'
import { serializeAccount } from '#core/users/serializers'

const at = Date.UTC(2026, 0, 1)

/** The body of the `GET /account` baselines, as long as those of the bench's users. */
export const ACCOUNT = serializeAccount({
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  email: 'user00000000@example.com',
  ...newFields({ firstName: 'First00000000', lastName: 'Last00000000' }),
  emailVerified: true,
  hasPassword: true,
  disabled: false,
  factors: [],
  createdAt: at,
  updatedAt: at,
  lastRequestAt: at,
})
