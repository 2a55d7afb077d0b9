/** What the tests use of `oidc-provider`, which has no types of its own. */
declare module 'oidc-provider' {
  import type { EventEmitter } from 'node:events'
  import type { IncomingMessage, Server, ServerResponse } from 'node:http'

  export class Provider extends EventEmitter {
    constructor(issuer: string, configuration: object)
    listen(port: number, host: string, listening: () => void): Server
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    readonly Grant: new (given: {
      clientId: string
      accountId: string
    }) => {
      addOIDCScope(scope: string): void
      save(): Promise<string>
    }
  }
}
