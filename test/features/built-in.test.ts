/** Features that every service has, besides those that a team or a host adds (docs/design.md, "Features"). */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import type { ServicesOf } from '#feature/declaration'
import type { notes } from '../../examples/notes/notes.ts'
import { asAdmin, signUp } from '../support/build.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { unlessTaken } from '../support/examples.ts'
import { projectTree, withBuiltIn } from '../support/project-copy.ts'
import { announcements } from './announcements.ts'

const PARTS = ['src', 'plugins', 'routes', 'examples', 'test/support', 'package.json']

/** Built from the copy, in which `notes` is built-in. */
const notesOf = (app: FastifyInstance) =>
  (app.services as typeof app.services & ServicesOf<[typeof notes]>).notes

await onEnginesOfRun(
  t,
  async (t, { emptyDatabase }) => {
    t.test('a service that is given features has the built-in ones too', async t => {
      const list = withBuiltIn('notes', `import { notes } from '../../examples/notes/notes.ts'\n`)
      const tree = projectTree(t, { 'src/features/built-in.ts': list }, PARTS)
      const env = { DATABASE_URL: await emptyDatabase(t) }
      const app = await tree.build(t, { env, features: [announcements] })
      const { id } = await signUp(app)
      const user = await app.services.users.get(id)
      const added = await notesOf(app).add(user, 'a note', { type: 'user', id, ip: null })
      t.match(added, { text: 'a note' })
      const events = async () => {
        const url = `/admin/events?type=note.created&userId=${id}`
        return (await app.inject({ url, headers: asAdmin })).json().results
      }
      t.match(await events(), [{ type: 'note.created', userId: id }])
      await app.inject({ method: 'DELETE', url: `/admin/users/${id}`, headers: asAdmin })
      t.strictSame((await notesOf(app).list({ id }, 10)).results, [], 'the rows are deleted with the user')
    })
  },
  unlessTaken('notes'),
)
