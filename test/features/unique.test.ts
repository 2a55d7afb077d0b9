/** Values of several columns that must be unique together, in imports and operations (docs/design.md, "Features"). */
import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { openStorage } from '#core/store/open'
import type { Storage } from '#core/store/store'
import type { UserWithHash } from '#core/users/user'
import type { ServicesOf } from '#feature/declaration'
import { BUILT_IN_FEATURES } from '#features/built-in'
import { eventOf, NOW, newUser } from '../storage/contract/fixtures.ts'
import { signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { type Member, members } from './members.ts'

const FEATURES = [...BUILT_IN_FEATURES, members]

const member = (fields: Partial<Member>): Member => ({
  id: uuidv7(),
  organization_id: 'one',
  email: null,
  seat: null,
  ...fields,
})

interface MemberStore {
  addMember(userId: string, member: Member): Promise<string>
  listMembers(): Promise<readonly string[]>
}

const storeOf = (storage: Storage): MemberStore => storage.features.members as unknown as MemberStore

/** Imports a user for each list of members. */
const importMembers = (storage: Storage, ...lists: readonly (readonly Member[])[]) => {
  const users = lists.map(
    (): UserWithHash => ({ ...newUser(), hasPassword: true, factors: [], lastRequestAt: null, version: 1 }),
  )
  return storage.bulkUsers.importUsers(
    users,
    users.map(({ id }) => eventOf(id, NOW, 'user.created')),
    lists.flatMap((list, user) => list.map(values => ({ table: 'members', values: { ...values }, user }))),
  )
}

const CREATED = { status: 'created' }

await onEnginesOfRun(t, async (t, { build, emptyDatabase }) => {
  t.test('an import leaves out users with values that other rows have together', async t => {
    const url = await emptyDatabase(t)
    const location = url.startsWith('sqlite:')
      ? { engine: 'sqlite' as const, file: url.slice('sqlite:'.length) }
      : { engine: 'postgres' as const, url }
    const storage = await openStorage(location, 2, FEATURES)
    t.teardown(() => storage.close())
    const first = [member({ email: 'a' }), member({ organization_id: 'two', email: 'a', seat: 7 })]
    t.strictSame(await importMembers(storage, first), [CREATED])
    const outcomes = await importMembers(
      storage,
      [member({ organization_id: 'three', email: 'a' }), member({ email: 'b', seat: 8 })],
      [member({ organization_id: 'four' }), member({ email: 'a' })],
      [member({ organization_id: 'two', email: 'a' }), member({ seat: 7 })],
      [member({ email: 'b' })],
      // Without a value nothing is the same.
      [member({})],
      [member({})],
    )
    t.strictSame(outcomes, [
      CREATED,
      { status: 'rowsTaken', rows: [1] },
      { status: 'rowsTaken', rows: [0, 1] },
      { status: 'rowsTaken', rows: [0] },
      CREATED,
      CREATED,
    ])
    t.equal((await storeOf(storage).listMembers()).length, 6)
  })

  t.test('an operation notices them', async t => {
    const app = await build(t, { features: [members] })
    const { members: store } = app.services as unknown as ServicesOf<[typeof members]>
    const [ada, eve] = [await signUp(app), await signUp(app)]
    t.equal(await store.addMember(ada.id, member({ email: 'a' })), 'added')
    t.equal(await store.addMember(eve.id, member({ email: 'a' })), 'taken')
    t.equal(await store.addMember(eve.id, member({ email: 'a', organization_id: 'two' })), 'added')
    t.equal(
      await store.addMember(ada.id, member({ email: 'b' })),
      'taken',
      'a member of each organization once',
    )
  })
})
