/** Operations of features concurrent with the deletion of their user (docs/design.md, "Account life cycle"). */
import t from 'tap'
import { notes } from '../../examples/notes/notes.ts'
import { asAdmin, bearer, type SignedUp, signUp } from '../support/build.ts'
import { onEveryEngine } from '../support/engines.ts'
import { unlessTaken } from '../support/examples.ts'
import { quickHashing } from '../support/fake-hashing.ts'
import { race, rounds } from '../support/races.ts'
import { storedRows } from '../support/stored-rows.ts'
import { attacks } from './attacks.ts'

await onEveryEngine(
  t,
  async (t, { build, newDatabase }) => {
    const env = { DATABASE_URL: await newDatabase(t) }
    const options = {
      env,
      features: [notes, attacks],
      hasher: quickHashing,
    }
    const app = await build(t, options)
    const other = await build(t, options)

    t.test('a note and the deletion of its user', async t => {
      const add = ({ token }: SignedUp) =>
        app.inject({
          method: 'POST',
          url: '/notes',
          headers: bearer(token),
          payload: { text: 'the text of a note' },
        })
      const outcomes = new Set<string>()
      for (const round of rounds) {
        const user = await signUp(app)
        const deleting = round % 4 < 2 ? app : other
        const [added, deleted] = await race(
          round,
          () => add(user),
          () => deleting.inject({ method: 'DELETE', url: `/admin/users/${user.id}`, headers: asAdmin }),
        )
        outcomes.add(`${added.statusCode} ${deleted.statusCode}`)
      }
      t.strictSame(
        [...outcomes].filter(outcome => !['201 204', '401 204'].includes(outcome)),
        [],
      )
      t.notMatch(await storedRows(env.DATABASE_URL), 'the text of a note', 'no orphan rows')
    })

    t.test('a row of a table without ON DELETE CASCADE, and the deletion of its user', async t => {
      const { attacks: store } = app.services as unknown as {
        attacks: { addIfUserExists(id: string, userId: string): Promise<string>; count(): Promise<number> }
      }
      for (const round of rounds) {
        const { id } = await signUp(app)
        const deleting = round % 4 < 2 ? app : other
        const remove = () =>
          deleting.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })
        const [first, second] =
          round % 2 === 0
            ? await Promise.all([store.addIfUserExists(`row ${round}`, id), remove()])
            : (await Promise.all([remove(), store.addIfUserExists(`row ${round}`, id)])).reverse()
        t.match([first, second], [/^(added|refused)$/, { statusCode: 204 }])
      }
      t.equal(await store.count(), 0, 'no orphan rows')
    })
  },
  unlessTaken('notes'),
)
