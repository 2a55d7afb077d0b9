/**
 * A provider of OpenID Connect for trying things out: `npm run example:provider`. It signs in anybody by any name, and keeps everything in
 * memory. Its users have the e-mail that they enter as their name, else one at example.com.
 */
import { Provider } from 'oidc-provider'

const PORT = 4_000
const ISSUER = `http://localhost:${PORT}`
const CLIENT = { id: 'gatehouse', secret: 'a-secret-to-play-with' }

const SERVICES = ['http://127.0.0.1:3000', 'http://localhost:3000']

const emailOf = (name: string): string => (name.includes('@') ? name : `${name}@example.com`)

const provider = new Provider(ISSUER, {
  clients: [
    {
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      redirect_uris: SERVICES.map(service => `${service}/account/sign-in/providers/example/callback`),
    },
  ],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  cookies: { keys: ['an example'] },
  findAccount: (_context: object, name: string) => ({
    accountId: name,
    claims: () => ({ sub: name, name, email: emailOf(name), email_verified: true }),
  }),
})

const entry = {
  id: 'example',
  name: 'Example',
  issuer: ISSUER,
  clientId: CLIENT.id,
  clientSecret: CLIENT.secret,
  authoritativeFor: ['example.com'],
}

provider.listen(PORT, 'localhost', () => {
  process.stdout.write(`The provider is at ${ISSUER}. Start the service with it:

OIDC_ALLOWED_HOSTS=localhost:${PORT} OIDC_PROVIDERS='${JSON.stringify([entry])}' npm run dev
`)
})
