/** The console in German: pages, errors, scopes, events, and where error pages lead. */
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { allFeatures } from '#features/built-in'
import { consoleModulesOf } from '#features/console/console-modules'
import { createKey } from '../support/admin-keys.ts'
import { ADMIN_KEY, build, signUp } from '../support/build.ts'
import { signedInTo } from '../support/console.ts'
import { FormClient } from '../support/form-client.ts'
import { receiver } from '../support/webhook-receiver.ts'

const GERMAN = { headers: { 'accept-language': 'de' } }

const isLetters = (text: string): boolean => /\p{L}/u.test(text)

t.test('every scope, error and event has words in both languages', async t => {
  const app = await build(t, { env: { CONSOLE: 'on' } })
  const { eventSchemas, adminScopes } = app.services
  const features = allFeatures()
  const { pages, errorTexts } = await consoleModulesOf(features, {
    eventTypes: Object.keys(eventSchemas),
    adminScopes,
    featureSettings: app.config.featureSettings,
  })
  t.strictSame([...errorTexts.de.keys()], [...errorTexts.en.keys()])
  const optionsOf = (path: string, name: string) => {
    const list = pages.find(page => page.path === path)?.list
    const inputs = [...(list?.filters ?? []), ...(list?.actions ?? []).flatMap(({ inputs }) => inputs ?? [])]
    return inputs.find(input => input.name === name)?.options ?? []
  }
  const named = [...optionsOf('admin-keys', 'scopes'), ...optionsOf('events', 'type')]
  t.equal(named.length, Object.keys(adminScopes).length + Object.keys(eventSchemas).length)
  for (const [value, text] of named) {
    if (typeof text === 'string') t.fail(`${value} has one text`)
    else t.ok(isLetters(text.de) && text.de !== text.en && !text.de.startsWith(value), `${value}: ${text.de}`)
  }
})

t.test('a German console is German throughout', async t => {
  const { url } = await receiver(t)
  const { host } = new URL(url)
  const app = await build(t, { env: { CONSOLE: 'on', WEBHOOK_ALLOWED_HOSTS: host } })
  const { id } = await signUp(app)
  const client = await signedInTo(app, ADMIN_KEY, GERMAN)
  const isGerman = (name: string): void => {
    t.match(client.page, '<html lang="de">', name)
    t.notMatch(client.page, /lang="en"/, name)
  }

  t.test('pages', async () => {
    const gone = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
    for (const path of [
      '',
      '/users',
      '/users?cursor=forged',
      '/users?role=no%20role',
      '/users?createdAfter=tomorrow',
      `/users/${id}`,
      `/users/${id}/sessions`,
      `/users/${id}/events`,
      `/users/${gone}`,
      '/users/no-id',
      `/users/${gone}/delete`,
      `/users/${id}/sessions/${gone}/end`,
      '/organizations',
      `/organizations/${gone}`,
      '/events',
      '/events?after=tomorrow',
      '/admin-keys',
      '/admin-keys/create',
      '/webhooks',
      `/webhooks/${gone}`,
      '/status',
      '/settings',
      '/providers',
      '/no-page?of=the-console',
    ]) {
      await client.open(`/console${path}`)
      isGerman(path)
    }
  })

  t.test('errors of forms', async t => {
    const refused: readonly (readonly [path: string, name: string, Readonly<Record<string, string>>])[] = [
      [`/users/${id}/roles`, 'roles', { roles: 'No!Role', adminKey: ADMIN_KEY }],
      [`/users/${id}/roles`, 'roles', { roles: 'a', adminKey: 'another' }],
      [`/users/${id}/email`, 'email', { email: 'no-address', adminKey: ADMIN_KEY }],
      ['/users/create', 'create', { email: '' }],
      ['/admin-keys/create', 'create', { name: '', adminKey: ADMIN_KEY }],
      ['/webhooks/create', 'create', { url: 'http://192.168.0.1/', adminKey: ADMIN_KEY }],
      ['/webhooks/create', 'create', { url: 'nothing', adminKey: ADMIN_KEY }],
    ]
    for (const [path, name, values] of refused) {
      await client.open(`/console${path}`)
      await client.submit(name, values)
      t.ok(client.status >= 400, path)
      t.match(client.page, 'class="notice bad"')
      isGerman(`${path} ${JSON.stringify(values)}`)
    }
  })
})

/** The button that leads on. */
const wayOnIn = (page: string): string =>
  /<a class="button primary[^"]*" href="([^"#]*)"/.exec(page.split('<main')[1] ?? '')?.[1] ?? ''

t.test('every error page leads on', async t => {
  const app = await build(t, { env: { CONSOLE: 'on' } })
  const leadsTo = async (client: FormClient, path: string, status: number, target: string): Promise<void> => {
    await client.open(path)
    t.equal(client.status, status, path)
    await client.open(wayOnIn(client.page))
    t.equal(client.path, target, `${path} leads on`)
    t.equal(client.status, 200)
  }
  const client = await signedInTo(app)
  const gone = '01936b7e-4a5c-7d3e-9f10-2b3c4d5e6f70'
  await leadsTo(client, `/console/users/${gone}`, 404, '/console/users')
  await leadsTo(client, '/console/users/no-id', 400, '/console/users')
  await leadsTo(client, '/console/users?unknown=1', 400, '/console/users')
  await leadsTo(client, '/console/no-page', 404, '/console')
  await leadsTo(client, '/console/no/page/at/all', 404, '/console')
  const limited = await signedInTo(app, (await createKey(app, ['events:read'])).text)
  await leadsTo(limited, '/console/users', 403, '/console')
  await leadsTo(limited, `/console/users/${gone}/delete`, 403, '/console')
  await signedOut(app)
})

/** A browser without a session comes to the sign-in, and from its errors back to it. */
const signedOut = async (app: FastifyInstance): Promise<void> => {
  const client = new FormClient(app)
  await client.open('/console/no-page')
  t.equal(client.path, '/console/sign-in')
  await client.post('/console/sign-in', { unknown: '1' })
  t.equal(client.status, 400)
  await client.open(wayOnIn(client.page))
  t.equal(client.path, '/console/sign-in')
}
