/** An MCP server whose tool needs an access token of Gatehouse: a protected resource (RFC 9728). README.md describes it. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createRemoteJWKSet, errors, jwtVerify } from 'jose'

const PORT = 4_400
const SCOPE = 'whoami'

/** Errors of jose that say nothing about the token: the keys could not be read. */
const UNAVAILABLE = ['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID']

export interface McpServerOptions {
  /** Where clients reach this server: the identifier of the resource, and the audience of its tokens. */
  readonly url: string
  /** `PUBLIC_URL` of Gatehouse. */
  readonly issuer: string
  /** A client that may introspect the tokens. `null`: a token whose access the user has ended is accepted until it expires. */
  readonly client: { readonly id: string; readonly secret: string } | null
}

const newTools = (): McpServer => {
  const tools = new McpServer({ name: 'whoami', version: '1.0.0' })
  tools.registerTool('whoami', { description: 'Says who uses the tool' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: `User ${authInfo?.extra?.user} by client ${authInfo?.clientId}` }],
  }))
  return tools
}

/** @returns a function that reads a token: `null` for one that this server must refuse. It throws if that cannot be found out now. */
const tokenReader = ({ url, issuer, client }: McpServerOptions) => {
  const keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/jwks.json`))
  const expected = { issuer, audience: url, typ: 'at+jwt', algorithms: ['EdDSA', 'ES256'] }

  const isActive = async (token: string): Promise<boolean> => {
    if (client === null) return true
    const basic = Buffer.from(`${client.id}:${client.secret}`).toString('base64')
    const response = await fetch(`${issuer}/oauth/introspect`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token }),
    })
    if (!response.ok) throw new Error(`Introspection returned ${response.status}`)
    const { active } = (await response.json()) as { readonly active: boolean }
    return active
  }

  return async (token: string): Promise<AuthInfo | null> => {
    try {
      const { payload } = await jwtVerify(token, keys, { ...expected, requiredClaims: ['exp', 'sub'] })
      // A token that is bound to a key needs a proof (RFC 9449 §7), which this server does not read.
      if (payload.cnf !== undefined || !(await isActive(token))) return null
      const { sub: user, client_id: clientId, scope, exp: expiresAt = 0 } = payload
      return {
        token,
        clientId: String(clientId),
        scopes: String(scope).split(' '),
        expiresAt,
        extra: { user },
      }
    } catch (error) {
      if (error instanceof errors.JOSEError && !UNAVAILABLE.includes(error.code)) return null
      throw error
    }
  }
}

const bearerToken = ({ headers: { authorization = '' } }: IncomingMessage): string | undefined =>
  /^bearer +(\S+)$/i.exec(authorization)?.[1]

/** Serves the tool at the path of `url`, and the metadata of the resource. */
export const mcpServer = (options: McpServerOptions): RequestListener => {
  const { url, issuer } = options
  const { origin, pathname } = new URL(url)
  const metadataPath = `/.well-known/oauth-protected-resource${pathname}`
  const metadata = { resource: url, authorization_servers: [issuer], scopes_supported: [SCOPE] }
  const readToken = tokenReader(options)
  const challenge = (error = ''): Record<string, string> => ({
    'www-authenticate': `Bearer ${error}scope="${SCOPE}", resource_metadata="${origin}${metadataPath}"`,
  })

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const refuse = (status: number, headers: Record<string, string> = {}) =>
      response.writeHead(status, headers).end()
    if (request.url === metadataPath)
      return response.setHeader('content-type', 'application/json').end(JSON.stringify(metadata))
    if (request.url !== pathname) return refuse(404)
    const token = bearerToken(request)
    if (token === undefined) return refuse(401, challenge())
    const auth = await readToken(token)
    if (auth === null) return refuse(401, challenge('error="invalid_token", '))
    if (!auth.scopes.includes(SCOPE)) return refuse(403, challenge('error="insufficient_scope", '))
    if (request.method !== 'POST') return refuse(405, { allow: 'POST' })
    const tools = newTools()
    response.on('close', () => tools.close())
    const transport = new StreamableHTTPServerTransport()
    await tools.connect(transport)
    return transport.handleRequest(Object.assign(request, { auth }), response)
  }

  return (request, response) => {
    handle(request, response).catch((error: unknown) => {
      process.stderr.write(`${error}\n`)
      if (response.headersSent) response.destroy()
      else response.writeHead(503, { 'retry-after': '1' }).end()
    })
  }
}

if (import.meta.main) {
  const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID, CLIENT_SECRET = '' } = process.env
  const url = `http://localhost:${PORT}/mcp`
  const client = CLIENT_ID === undefined ? null : { id: CLIENT_ID, secret: CLIENT_SECRET }
  createServer(mcpServer({ url, issuer: ISSUER, client })).listen(PORT, 'localhost', () => {
    process.stdout.write(`The MCP server is at ${url}\n`)
  })
}
