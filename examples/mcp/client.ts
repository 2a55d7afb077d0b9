/** An MCP client that signs its user in by a browser when the server asks for it. README.md describes it. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'

/** What the client says about itself when it registers, and in its metadata document. The port of the redirect URI may vary. */
export const CLIENT_METADATA = {
  client_name: 'MCP example',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}

export interface SessionOptions {
  readonly openBrowser: (url: URL) => void
  /** The URL of the metadata document, which is then the client id. Without one the client registers itself. */
  readonly clientMetadataUrl?: string
}

/** A user at one MCP server, in memory. A client that keeps its user signed in stores what the `save` methods receive. */
export class Session implements OAuthClientProvider {
  readonly clientMetadata = CLIENT_METADATA
  readonly clientMetadataUrl?: string
  readonly #openBrowser: (url: URL) => void
  readonly #callback: Server
  #state = ''
  #verifier = ''
  #client: OAuthClientInformationMixed | undefined
  #tokens: OAuthTokens | undefined
  #response = Promise.withResolvers<URLSearchParams>()

  private constructor({ openBrowser, clientMetadataUrl }: SessionOptions) {
    this.#openBrowser = openBrowser
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl
    this.#callback = createServer((request, response) => this.#comeBack(request, response))
  }

  /** Listens for the browser's way back (RFC 8252 §7.3) until {@link close}. */
  static async open(options: SessionOptions): Promise<Session> {
    const session = new Session(options)
    await once(session.#callback.listen(0, '127.0.0.1'), 'listening')
    return session
  }

  /** Signs the user in if the server asks for it. @throws {Error} if the user refuses. */
  async connect(serverUrl: URL): Promise<Client> {
    const client = new Client({ name: CLIENT_METADATA.client_name, version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(serverUrl, { authProvider: this })
    try {
      await client.connect(transport)
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error
      const params = await this.#response.promise
      const code = params.get('code')
      if (code === null) throw new Error(`There is no access: ${params.get('error')}`)
      await transport.finishAuth(code)
      await client.connect(new StreamableHTTPClientTransport(serverUrl, { authProvider: this }))
    }
    return client
  }

  close(): void {
    this.#callback.close()
    this.#callback.closeAllConnections()
  }

  get redirectUrl(): string {
    return `http://127.0.0.1:${(this.#callback.address() as AddressInfo).port}/callback`
  }

  state(): string {
    this.#state = randomUUID()
    return this.#state
  }

  redirectToAuthorization(url: URL): void {
    this.#response = Promise.withResolvers()
    this.#openBrowser(url)
  }

  #comeBack({ url = '' }: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(url, this.redirectUrl)
    // Another state belongs to another sign-in, and another issuer is not the server that was asked (RFC 9207).
    const isExpected =
      pathname === '/callback' &&
      searchParams.get('state') === this.#state &&
      searchParams.get('iss') === this.#client?.issuer
    if (isExpected) this.#response.resolve(searchParams)
    response.writeHead(isExpected ? 200 : 400)
    response.end(isExpected ? 'You can close this page.' : 'This is not the sign-in that was begun.')
  }

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#client
  }

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client
  }

  tokens(): OAuthTokens | undefined {
    return this.#tokens
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens
  }

  codeVerifier(): string {
    return this.#verifier
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  /** Called when the authorization server refuses the client or its refresh token. */
  invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): void {
    if (scope === 'all' || scope === 'client') this.#client = undefined
    if (scope === 'all' || scope === 'tokens') this.#tokens = undefined
  }
}

if (import.meta.main) {
  const { CLIENT_METADATA_URL: clientMetadataUrl } = process.env
  const session = await Session.open({
    openBrowser: url => process.stdout.write(`Open ${url}\n`),
    ...(clientMetadataUrl !== undefined && { clientMetadataUrl }),
  })
  const client = await session.connect(new URL('http://localhost:4400/mcp'))
  const { content } = await client.callTool({ name: 'whoami' })
  process.stdout.write(`${JSON.stringify(content)}\n`)
  await client.close()
  session.close()
}
