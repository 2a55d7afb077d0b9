/** Contract: every user that leaves the store has the last request that this process has cached (docs/design.md, "Hot path"). */
import { newEmailToken } from '#core/accounts/email-token'
import { UserCache } from '#core/auth/user-cache'
import { withUserCache } from '#core/store/with-user-cache'
import type { User } from '#core/users/user'
import {
  ALL,
  actingIn,
  add,
  eventOf,
  NOW,
  type Part,
  proofOf,
  resetBy,
  sessionOf,
  userRequests,
} from './fixtures.ts'

const KEEP = { revokeSessions: false, invalidateTokens: false, credentialId: null, versions: null }
const LATER = NOW + 1_000

export const cachedLastRequests: Part = async (t, open) => {
  const stored = await open(t)
  const userCache = new UserCache()
  const storage = withUserCache(stored, userCache)

  t.test('reads and writes return the cached last request, which is not in the database yet', async t => {
    const { user, session, userKey } = await add(storage)
    const { id } = user
    const found = await stored.users.find(id)
    if (found === undefined) throw new Error('no user')
    const cachedUser = userCache.recordOf(found, userKey)
    cachedUser.lastRequestAt = LATER
    userCache.add(cachedUser)
    const tokenOf = async (purpose: 'verification' | 'passwordReset') => {
      const token = newEmailToken(purpose, id, user.email, NOW).stored
      await storage.emailTokens.add(token, eventOf(id, NOW, 'password.reset-requested'), null)
      return token
    }
    const verification = await tokenOf('verification')
    const reads: Record<string, () => unknown> = {
      find: () => storage.users.find(id),
      findByEmail: async () => (await storage.users.findByEmail(user.email))?.user,
      list: async () => (await storage.users.list(ALL)).find(each => each.id === id),
      exportUsers: async () => (await storage.bulkUsers.exportUsers(null)).find(each => each.id === id),
      update: () => storage.users.update(id, { firstName: 'Grace' }, eventOf(id), KEEP),
      changePassword: () =>
        storage.accounts.changePassword(
          sessionOf(id),
          actingIn(session, user.passwordHash),
          'new hash',
          eventOf(id),
        ),
      confirmEmail: () =>
        storage.emailTokens.confirmEmail(verification, eventOf(id), proofOf({ passwordHash: 'new hash' })),
      resetPassword: async () =>
        resetBy(storage, await tokenOf('passwordReset'), 'hash', sessionOf(id), eventOf(id)),
    }
    for (const [name, read] of Object.entries(reads))
      t.match(await read(), { id, lastRequestAt: LATER } satisfies Partial<User>, name)
    t.match(await stored.users.find(id), { lastRequestAt: null })
  })

  t.test('a later last request in the database wins', async t => {
    const { user, userKey } = await add(storage)
    await storage.lastRequests.recordLastRequests(userRequests([{ key: userKey, at: LATER }]), [])
    t.match(await storage.users.find(user.id), { lastRequestAt: LATER })
    t.equal(await storage.users.find('unknown'), undefined)
    t.equal(
      await storage.users.update('unknown', {}, eventOf('unknown'), KEEP),
      'userNotFound',
      'the reason why nothing was changed is returned as it is',
    )
  })
}
