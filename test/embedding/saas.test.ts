/** The application of examples/saas, as a process. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { bearer, freshEmail, PASSWORD, temporaryFolder } from '../support/build.ts'
import { readMails, SUBJECT, tokenIn } from '../support/mailbox.ts'
import { spawnScript, stopping } from '../support/process.ts'
import { until } from '../support/until.ts'

const PROJECT = join(import.meta.dirname, '..', '..')
const FOLDER = join(PROJECT, 'examples/saas')
const WAIT = 30_000

t.test('the application has at most 150 lines', async t => {
  const sources = readdirSync(FOLDER).filter(name => name.endsWith('.ts'))
  const lines = sources.map(name => readFileSync(join(FOLDER, name), 'utf8').split('\n').length - 1)
  const total = lines.reduce((sum, count) => sum + count, 0)
  t.ok(total <= 150, `${total} lines`)
  t.match(readFileSync(join(FOLDER, 'README.md'), 'utf8'), 'npm run example:saas')
})

t.test('users of the application', async t => {
  const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
  t.equal(scripts['example:saas'], 'node --import ./src/preload.js examples/saas/server.ts')
  const folder = temporaryFolder(t)
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const child = spawnScript(['examples/saas/server.ts'], {
    NODE_ENV: 'development',
    PORT: String(port),
    DATABASE_URL: `sqlite:${join(folder, 'saas.db')}`,
  })
  const stop = stopping(t, child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', chunk => {
      output += chunk
    })
  await until(
    () => output,
    text => text.includes('listening at'),
    WAIT,
  )

  const post = (path: string, body: object, headers: Record<string, string>) =>
    fetch(origin + path, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const submit = (path: string, fields: Record<string, string>, cookie = '') =>
    fetch(origin + path, {
      method: 'POST',
      redirect: 'manual',
      headers: { origin, accept: 'text/html', cookie },
      body: new URLSearchParams(fields),
    })
  const get = (path: string, cookie = '') =>
    fetch(origin + path, { redirect: 'manual', headers: { accept: 'text/html', cookie } })
  /** By the hosted page. @returns the cookie. */
  const signUp = async (email: string): Promise<string> => {
    const response = await submit('/auth/sign-up', { email, password: PASSWORD })
    t.equal(response.status, 303, 'signed up')
    return String(response.headers.get('set-cookie')?.split(';', 1)[0])
  }
  const tokenOf = (cookie: string) => bearer(cookie.replace('ACCESS_TOKEN=', ''))
  const mailedToken = async (email: string, kind: string): Promise<string> => {
    const [mail] = await until(
      async () =>
        (await readMails(join(folder, 'outbox'))).filter(
          ({ to, subject }) => to?.[0]?.address === email && subject === SUBJECT[kind],
        ),
      found => found.length > 0,
      WAIT,
    )
    return mail === undefined ? '' : tokenIn(mail)
  }
  const confirm = async (email: string, cookie: string) => {
    const token = await mailedToken(email, 'verification')
    t.equal((await post('/auth/account/verify-email', { token }, tokenOf(cookie))).status, 200)
  }

  const anonymous = await get('/')
  t.equal(anonymous.status, 303)
  t.equal(anonymous.headers.get('location'), '/auth/sign-in')
  t.equal((await get('/organizations/x/projects')).status, 401)

  const emails = [freshEmail('ann'), freshEmail('ben'), freshEmail('cat')] as const
  const [ann, ben, cat] = [await signUp(emails[0]), await signUp(emails[1]), await signUp(emails[2])]
  t.equal((await submit('/organizations', { name: 'Acme <b>' }, ann)).status, 303)
  t.equal((await submit('/organizations', { name: '' }, ann)).status, 400)
  const crossSite = await fetch(`${origin}/organizations`, {
    method: 'POST',
    headers: { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site', cookie: ann },
    body: new URLSearchParams({ name: 'Evil' }),
  })
  t.equal(crossSite.status, 403)
  const home = await (await get('/', ann)).text()
  t.match(home, 'Acme &lt;b&gt;')
  t.match(home, emails[0])
  const [, id = ''] = /action="\/organizations\/([\w-]+)\/projects"/.exec(home) ?? []
  const path = `/organizations/${id}/projects`
  t.equal((await submit(path, { name: 'Rocket' }, ann)).status, 303)
  const projectsOf = async (cookie: string): Promise<unknown> => (await get(path, cookie)).json()
  t.same(await projectsOf(ann), { organization: 'Acme <b>', projects: ['Rocket'] })
  t.equal((await get(path, ben)).status, 404, 'others see nothing')
  t.equal((await submit(path, { name: 'Spy' }, ben)).status, 404)

  await confirm(emails[0], ann)
  const invitation = { email: emails[1], roles: ['member'] }
  t.equal((await post(`/auth/organizations/${id}/invitations`, invitation, tokenOf(ann))).status, 201)
  await confirm(emails[1], ben)
  const token = await mailedToken(emails[1], 'organizationInvitation')
  t.equal((await post('/auth/account/invitations/accept', { token }, tokenOf(ben))).status, 200)
  t.match(await projectsOf(ben), { projects: ['Rocket'] }, 'members read')
  t.equal((await submit(path, { name: 'Mine' }, ben)).status, 403, 'and add nothing')
  t.notMatch(await (await get('/', ben)).text(), path)

  const page = await until(
    async () => (await get('/', ann)).text(),
    text => text.includes('organization.created') && text.split('organization.member-added').length > 2,
    WAIT,
  )
  t.match(page, 'organization.created', 'by webhook')
  t.equal((await post('/webhooks', { type: 'organization.deleted' }, {})).status, 401)
  const forged = { 'webhook-id': 'x', 'webhook-timestamp': '1', 'webhook-signature': 'v1,x' }
  t.equal((await post('/webhooks', {}, forged)).status, 401)

  const deleted = await fetch(`${origin}/auth/organizations/${id}`, {
    method: 'DELETE',
    headers: tokenOf(ann),
  })
  t.equal(deleted.status, 204)
  for (const cookie of [ann, ben, cat]) t.equal((await get(path, cookie)).status, 404)
  t.notMatch(await (await get('/', ann)).text(), 'Acme')
  t.equal(await stop('SIGTERM'), 0, output)
  t.notMatch(output, /"level":[56]0/, 'no error is logged')
})
