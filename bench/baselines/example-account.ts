/** The body of the `GET /account` baselines, as long as those of the bench's users. */
export const ACCOUNT = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  email: 'user00000000@example.com',
  firstName: 'First00000000',
  lastName: 'Last00000000',
  emailVerified: true,
  roles: [],
  userMetadata: {},
  appMetadata: {},
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  lastRequestAt: '2026-01-01T00:00:00.000Z',
}
