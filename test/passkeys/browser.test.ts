/** Passkeys in Chromium, with virtual authenticators and the code of docs/api.md (docs/design.md, "Passkeys"). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { CDPSession, Page } from 'playwright-core'
import t from 'tap'
import { freePort } from '../../scripts/postgres-server.ts'
import { allEvents } from '../support/admin-routes.ts'
import { launchBrowser, withoutBrowser } from '../support/browser.ts'
import { build, freshEmail, PASSWORD } from '../support/build.ts'
import { creationOptions, listPasskeys, postPasskey, postSignIn, removePasskey } from '../support/passkeys.ts'

/** What the code of the document exports. */
interface PasskeysModule {
  addPasskey(name?: string): Promise<{ id: string }>
  signInWithPasskey(): Promise<{ user: { id: string; email: string }; accessToken: string }>
}

/** For options that the functions of the document would not use. */
interface ResponsesModule {
  create(options: object): Promise<object>
  get(options: object): Promise<object>
}

const RESPONSES = `
export const create = async options => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  return (await navigator.credentials.create({ publicKey })).toJSON()
}
export const get = async options => {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  return (await navigator.credentials.get({ publicKey })).toJSON()
}`

const API = join(import.meta.dirname, '..', '..', 'docs', 'api.md')

/** The block of the document that exports the functions. */
const documentedModule = (): string => {
  const blocks = [...readFileSync(API, 'utf8').matchAll(/^```js\n([\s\S]*?)^```$/gm)].map(
    ([, text = '']) => text,
  )
  const [module, ...others] = blocks.filter(text => text.includes('export const addPasskey'))
  if (module === undefined || others.length > 0) throw new Error('docs/api.md must have the code once')
  return module
}

const listenOnLocalhost = async (t: Parameters<typeof build>[0]) => {
  const port = await freePort()
  const app = await build(t, {
    env: { PUBLIC_URL: `http://localhost:${port}` },
    extend: app => {
      for (const [file, text] of [
        ['passkeys.js', documentedModule()],
        ['responses.js', RESPONSES],
      ])
        app.get(`/${file}`, (_request, reply) => reply.type('text/javascript').send(text))
    },
  })
  await app.listen({ host: 'localhost', port })
  return { app, origin: `http://localhost:${port}` }
}

const addAuthenticator = async (session: CDPSession, transport: 'internal' | 'usb'): Promise<string> => {
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport,
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return authenticatorId
}

/** Only this one responds. */
const useOnly = async (session: CDPSession, used: string, others: readonly string[]): Promise<void> => {
  for (const authenticatorId of [used, ...others])
    await session.send('WebAuthn.setAutomaticPresenceSimulation', {
      authenticatorId,
      enabled: authenticatorId === used,
    })
}

/** Runs a function of the document in the page. @returns its result, or the text of its error. */
const run = (page: Page, name: keyof PasskeysModule): Promise<unknown> =>
  page.evaluate(async name => {
    const url = '/passkeys.js'
    const module = (await import(url)) as PasskeysModule
    return module[name]().catch((error: Error) => `${error.name}: ${error.message}`)
  }, name)

/** The response of the authenticator for options, as JSON. */
const respond = (page: Page, name: keyof ResponsesModule, options: object): Promise<object> =>
  page.evaluate(
    async ({ name, options }) => {
      const url = '/responses.js'
      return ((await import(url)) as ResponsesModule)[name](options)
    },
    { name, options },
  )

const optionsOf = async (app: FastifyInstance): Promise<{ rpId: string }> =>
  (await app.inject({ method: 'POST', url: '/account/sign-in/passkey/options' })).json()

t.test('passkeys work in a browser', { skip: withoutBrowser }, async t => {
  const { app, origin } = await listenOnLocalhost(t)
  const context = await (await launchBrowser(t)).newContext()
  const page = await context.newPage()
  await page.goto(`${origin}/health`)
  const session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  const internal = await addAuthenticator(session, 'internal')

  const email = freshEmail()
  const signedUp = await page.evaluate(
    async payload => {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch('/account/sign-up', {
        method: 'POST',
        headers,
        body: JSON.stringify(payload),
      })
      return response.json() as Promise<{ accessToken: string; user: { id: string } }>
    },
    { email, password: PASSWORD },
  )
  const token = signedUp.accessToken

  /** A change of passkeys ends the proofs of identity of the other sessions. */
  const newToken = async (): Promise<string> => {
    const signedIn = (await run(page, 'signInWithPasskey')) as { accessToken: string }
    return signedIn.accessToken
  }

  t.test('register, then sign in without a user name', async t => {
    t.match(await run(page, 'addPasskey'), { transports: ['internal'], lastUsedAt: null })
    const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId: internal })
    t.match(credentials, [{ isResidentCredential: true, rpId: 'localhost' }])
    await context.clearCookies()
    t.match(await run(page, 'signInWithPasskey'), { user: { id: signedUp.user.id, email } })
    t.match(await context.cookies(), [{ name: 'ACCESS_TOKEN', httpOnly: true }])
  })

  t.test('one device makes one passkey', async t => {
    t.match(await run(page, 'addPasskey'), /^InvalidStateError/)
    t.equal((await listPasskeys(app, token)).length, 1)
  })

  t.test('two keys: each signs in, until it is removed', async t => {
    const usb = await addAuthenticator(session, 'usb')
    await useOnly(session, usb, [internal])
    const added = await run(page, 'addPasskey')
    t.match(added, { transports: ['usb'] })
    for (const used of [usb, internal]) {
      await useOnly(
        session,
        used,
        [usb, internal].filter(id => id !== used),
      )
      t.match(await run(page, 'signInWithPasskey'), { user: { email } })
    }
    const { id } = added as { id: string }
    t.equal((await removePasskey(app, await newToken(), id)).statusCode, 204)
    await useOnly(session, usb, [internal])
    t.match(await run(page, 'signInWithPasskey'), /could not be verified/)
    await useOnly(session, internal, [usb])
    t.match(await run(page, 'signInWithPasskey'), { user: { email } })
    await session.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: usb })
  })

  t.test('a user who is not verified does not sign in', async t => {
    await session.send('WebAuthn.setUserVerified', { authenticatorId: internal, isUserVerified: false })
    t.match(await run(page, 'signInWithPasskey'), /^NotAllowedError/)
    const options = { ...(await optionsOf(app)), userVerification: 'discouraged' }
    t.equal(
      (await postSignIn(app, await respond(page, 'get', options))).statusCode,
      401,
      'also not with other options',
    )
    await session.send('WebAuthn.setUserVerified', { authenticatorId: internal, isUserVerified: true })
  })

  t.test('a response is accepted once', async t => {
    const credential = await respond(page, 'get', await optionsOf(app))
    t.equal((await postSignIn(app, credential)).statusCode, 200)
    t.equal((await postSignIn(app, credential)).statusCode, 401)
  })

  t.test('a page of another origin signs in nobody, and adds nothing', async t => {
    const ownToken = await newToken()
    const { origin: otherOrigin } = await listenOnLocalhost(t)
    const other = await context.newPage()
    await other.goto(`${otherOrigin}/health`)
    const otherSession = await context.newCDPSession(other)
    await otherSession.send('WebAuthn.enable')
    const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId: internal })
    const authenticatorId = await addAuthenticator(otherSession, 'internal')
    for (const credential of credentials)
      await otherSession.send('WebAuthn.addCredential', {
        authenticatorId,
        credential: { ...credential, signCount: 100 },
      })
    const stolen = await respond(other, 'get', await optionsOf(app))
    t.equal((await postSignIn(app, stolen)).statusCode, 401)
    await otherSession.send('WebAuthn.clearCredentials', { authenticatorId })
    const made = await respond(other, 'create', (await creationOptions(app, ownToken)).json())
    t.equal((await postPasskey(app, ownToken, { credential: made })).statusCode, 400)
    await other.close()
  })

  t.test('a counter that went back is refused: the key was copied', async t => {
    t.match(await run(page, 'signInWithPasskey'), { user: { email } })
    const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId: internal })
    const [credential] = credentials
    if (credential === undefined) throw new Error('no credential')
    await session.send('WebAuthn.clearCredentials', { authenticatorId: internal })
    await session.send('WebAuthn.addCredential', {
      authenticatorId: internal,
      credential: { ...credential, signCount: 1 },
    })
    t.match(await run(page, 'signInWithPasskey'), /could not be verified/)
    const events = await allEvents(app, { userId: signedUp.user.id, type: 'passkey.counter-regressed' })
    t.equal(events.length, 1)
  })
})
