/** Organizations on the command line (docs/operations.md, "Command line"). */
import t from 'tap'
import { build, newFile, signUp } from '../support/build.ts'
import { runCommand } from '../support/cli.ts'
import { call, team } from '../support/organizations.ts'

t.test('the operator creates, lists and changes organizations of a running service', async t => {
  const DATABASE_URL = await newFile(t)
  const env = { DATABASE_URL, ORGANIZATION_ROLES: 'billing' }
  const app = await build(t, { env })
  const run = (...args: string[]) => runCommand(['organizations', ...args], env)
  const runJson = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)
  const [ann, ben] = [await signUp(app), await signUp(app)]
  const { id, slug } = await runJson('create', ann.email, '--name', 'Otters')
  t.equal(slug, 'otters')
  t.match((await run('list')).stdout, `${id} `)
  t.equal((await runJson('show', 'otters')).id, id)
  const added = await runJson('add-member', 'otters', ben.id, '--roles', 'billing, member')
  t.strictSame(added.roles, ['billing', 'member'])
  t.equal((await call(app, ben, 'GET', `/organizations/${id}`)).statusCode, 200, 'the service sees it')
  const listed = await runJson('members', id)
  t.strictSame(
    listed.results.map(({ userId }: { userId: string }) => userId),
    [ann.id, ben.id],
  )
  t.match((await run('members', id)).stdout, ben.email)
  t.equal((await run('remove-member', id, ben.email)).code, 0)
  t.equal((await call(app, ben, 'GET', `/organizations/${id}`)).statusCode, 404)
  t.equal((await run('delete', id)).code, 0)
  t.equal((await call(app, ann, 'GET', `/organizations/${id}`)).statusCode, 404)
})

t.test('what is not valid is refused with the text of the HTTP API', async t => {
  const DATABASE_URL = await newFile(t)
  const env = { DATABASE_URL }
  const app = await build(t, { env })
  const { organization, owner } = await team(app)
  const run = (...args: string[]) => runCommand(['organizations', ...args], env)
  const cases: readonly (readonly [string[], number, RegExp])[] = [
    [['create', owner.id, '--name', 'A', '--slug', 'admin'], 2, /The slug is reserved/],
    [['create', owner.id, '--name', 'x://y'], 2, /The name must not contain ":\/\/" or "www\."/],
    [['list', '--name', 'A', '--slug', 'a'], 2, /The slug cannot be combined with name/],
    [['create', owner.id, '--name', 'A', '--slug', organization.slug], 1, /slug is already taken/],
    [['create', 'nobody@example.com', '--name', 'A'], 1, /There is no such user/],
    [['show', 'unheard-of'], 1, /There is no such organization/],
    [['add-member', organization.id, owner.id, '--roles', 'unheard-of'], 2, /roles/],
    [['remove-member', organization.id, owner.id], 1, /last owner/],
    [['list', '--limit', '0'], 2, /--limit must be an integer/],
  ]
  for (const [args, code, message] of cases) {
    const result = await run(...args)
    t.equal(result.code, code, args.join(' '))
    t.match(result.stderr, message)
  }
})
