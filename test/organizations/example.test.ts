/** The routes of docs/organizations.md, in a fork and in a host. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { bearer, newFile, PASSWORD, signUp } from '../support/build.ts'
import { errorsOf } from '../support/error-response.ts'
import { addMember, call, team } from '../support/organizations.ts'
import { applyBlocks, blocksOf } from '../support/page-blocks.ts'
import { projectTree } from '../support/project-copy.ts'

const PAGE = 'docs/organizations.md'
const [fork, host, ...others] = blocksOf(PAGE, readFileSync(join(import.meta.dirname, '../..', PAGE), 'utf8'))

t.equal(others.length, 0)

const tree = projectTree(t, {})

t.test('in a fork', async t => {
  if (fork === undefined) throw new Error('no block')
  applyBlocks(tree.folder, [fork])
  const app = await tree.build(t, { env: { ORGANIZATION_ROLES: 'billing' } })
  const { organization, owner, admin, member } = await team(app)
  const url = `/organizations/${organization.id}/invoices`
  t.strictSame((await call(app, owner, 'GET', url)).json(), { of: organization.name, results: [] })
  for (const user of [admin, member]) errorsOf(t, await call(app, user, 'GET', url), 403)
  await addMember(app, organization.id, member.id, ['billing'])
  t.equal((await call(app, member, 'GET', url)).statusCode, 200)
  errorsOf(t, await call(app, await signUp(app), 'GET', url), 404)
})

t.test('in a host', async t => {
  const settings = `{ DATABASE_URL: '${await newFile(t)}', NODE_ENV: 'test', MAIL_URL: 'off', RATE_LIMIT: 'off', ORGANIZATION_ROLES: 'billing' }`
  const text = String(host?.text)
    .replace("from 'gatehouse'", "from './src/gatehouse.ts'")
    .replace("{ DATABASE_URL: 'sqlite:data/accounts.db' }", settings)
  const file = join(tree.folder, 'server.ts')
  writeFileSync(file, text)
  const { default: app }: { default: FastifyInstance } = await import(file)
  t.teardown(() => app.close())
  const inject = (method: 'GET' | 'POST', url: string, payload?: object, token = '') =>
    app.inject({ method, url, headers: token === '' ? {} : bearer(token), ...(payload && { payload }) })
  const signUpAs = async (email: string): Promise<string> =>
    (await inject('POST', '/auth/account/sign-up', { email, password: PASSWORD })).json().accessToken
  const ann = await signUpAs('ann@example.com')
  const created = (await inject('POST', '/auth/organizations', { name: 'Otters' }, ann)).json()
  const url = `/projects/${created.id}`
  t.strictSame((await inject('GET', url, undefined, ann)).json(), { of: 'Otters' })
  t.equal((await inject('GET', url, undefined, await signUpAs('ben@example.com'))).statusCode, 404)
  t.equal((await inject('GET', url)).statusCode, 401)
})
