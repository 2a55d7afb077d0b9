/** Identities in imports and exports (docs/design.md, "Account life cycle"). */
import t from 'tap'
import { call } from '../support/account-routes.ts'
import { bearer, freshEmail } from '../support/build.ts'
import { exportAll, importAll } from '../support/bulk-users.ts'
import { onEnginesOfRun } from '../support/engines.ts'
import { freshAccount, programOf, providersEnv, startProvider } from '../support/identity-provider.ts'

const HASHES = '?passwordHashes=true'

await onEnginesOfRun(t, async (t, { build }) => {
  const provider = await startProvider(t)
  const env = providersEnv([provider.entry()], [provider.issuer])
  const app = await build(t, { env })
  const program = programOf(app, provider)

  t.test('an exported user signs in at another service', async t => {
    provider.account = freshAccount()
    const { user, accessToken } = (await program.signIn()).json()
    await program.signIn()
    const lines = await exportAll(app, HASHES)
    const line = lines.find(({ id }) => id === user.id)
    t.match(line, {
      factors: [],
      credentials: {
        identities: [
          { issuer: provider.issuer, subject: provider.account.sub, provider: 'test', email: user.email },
        ],
      },
    })
    t.notOk(
      (await exportAll(app)).some(each => 'credentials' in each),
      'not without hashes',
    )
    const other = await build(t, { env })
    t.match(await importAll(other, lines), [{ status: 'created' }, { status: 'finished' }])
    t.equal((await programOf(other, provider).signIn()).json().user?.id, user.id)
    const { results } = (await call(app, 'GET', '/account/identities', undefined, bearer(accessToken))).json()
    const copied = await exportAll(other, HASHES)
    t.match(copied[0]?.credentials, { identities: [{ linkedAt: results[0].linkedAt }] })
    t.match(await importAll(other, lines), [{ status: 'exists' }, { status: 'finished' }])
  })

  t.test('an identity belongs to one user: other lines fail', async t => {
    const identity = { issuer: provider.issuer, subject: 'of two lines', provider: 'test' }
    const line = () => ({ email: freshEmail(), credentials: { identities: [identity] } })
    const taken = {
      'credentials.identities.0.subject': ['This account of the provider is linked to an account already'],
    }
    const results = await importAll(app, [
      line(),
      line(),
      {
        email: freshEmail(),
        credentials: {
          identities: [
            { ...identity, subject: 'x' },
            { ...identity, subject: 'x' },
          ],
        },
      },
    ])
    t.match(results, [
      { status: 'created' },
      { status: 'failed', errors: taken },
      {
        status: 'failed',
        errors: { 'credentials.identities.1.subject': taken['credentials.identities.0.subject'] },
      },
      { status: 'finished', created: 1, failed: 2 },
    ])
    t.match(await importAll(app, [line()]), [{ status: 'failed', errors: taken }, { failed: 1 }])
    const wrong = {
      email: freshEmail(),
      credentials: { identities: [{ ...identity, subject: '', email: 'x', roles: [] }] },
    }
    const [failed] = await importAll(app, [wrong])
    t.strictSame(failed?.errors, {
      'credentials.identities.0.subject': ['must have at least 1 character'],
      'credentials.identities.0.email': ['must be a valid e-mail address'],
      'credentials.identities.0.roles': ['is not allowed'],
    })
  })
})
