/** The authorization server (OAuth 2.1), as a feature. */
import { defineFeature } from '#feature/declaration'
import { backChannelOf, ENDING_EVENTS } from './back-channel-logout.ts'
import { Clients } from './clients.ts'
import { definitions, type OAuthDeps } from './definitions.ts'
import { publicRsaKeys } from './id-token-keys.ts'
import { resourceMetadataUrl } from './metadata.ts'
import { Resources } from './resources.ts'

const isOn = ({ settings }: Pick<OAuthDeps, 'settings'>): boolean => settings.OAUTH === 'on'

export const oauth = defineFeature({
  ...definitions,
  checkSettings: ({ OAUTH, OAUTH_RSA_KEY }, { signsForOthers, encrypts, isEmbedded }) => {
    if (OAUTH === 'off') return []
    return [
      ...(signsForOthers
        ? []
        : ['OAUTH needs JWT_ALGORITHM=EdDSA or ES256: others could not verify the tokens of clients']),
      ...(encrypts
        ? []
        : ['ENCRYPTION_KEY is needed with PostgreSQL and OAUTH: refresh tokens depend on it']),
      ...(OAUTH_RSA_KEY !== null || isEmbedded
        ? []
        : [
            'OAUTH_RSA_KEY is needed with PostgreSQL and OAUTH: make one with openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048',
          ]),
    ]
  },
  publicKeys: publicRsaKeys,
  resourceMetadata: ({ settings, config }) =>
    settings.OAUTH === 'on' ? resource => resourceMetadataUrl(config.publicUrl, resource) : null,
  routes: new URL('routes/', import.meta.url),
  pages: () => import('./pages.ts'),
  console: () => import('./console-pages.ts'),
  services: {
    clients: deps => new Clients(deps),
    resources: deps => new Resources(deps),
    /** `null` with `OAUTH=off`, which does not load it, and on the command line. */
    oauth: async deps => {
      const signer = deps.settings.OAUTH === 'on' ? deps.clientTokens() : null
      if (signer === null) return null
      const { OAuthServer } = await import('./oauth-server.ts')
      return new OAuthServer(deps, signer)
    },
  },
  async commands(program, withServices, { adminScopes }) {
    const { clientCommands } = await import('./commands.ts')
    clientCommands(program, withServices, adminScopes)
  },
  jobs: {
    removeDeleted: {
      every: 60_000,
      isEnabled: isOn,
      run: (deps, run) => new Clients(deps).removeDeleted(run),
    },
    removeUnused: {
      every: 3_600_000,
      isEnabled: isOn,
      run: (deps, run) => new Clients(deps).removeUnused(run),
    },
    repeatLogouts: {
      every: 60_000,
      isEnabled: isOn,
      run: async (deps, { signal }) => backChannelOf(deps)?.repeat(signal),
    },
  },
  consumers: {
    logout: {
      isEnabled: isOn,
      types: ENDING_EVENTS,
      handle: async (deps, { userId }) => {
        if (userId !== null) await backChannelOf(deps)?.end(userId)
      },
    },
  },
})
