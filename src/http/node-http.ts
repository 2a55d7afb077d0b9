/**
 * Values of `node:http`. An `import` of the module would read every export, also the getters of `WebSocket` and its events, which load
 * Node's `fetch`.
 */
export const { createServer, STATUS_CODES, ServerResponse, validateHeaderValue } =
  process.getBuiltinModule('node:http')

export type ServerResponse = InstanceType<typeof ServerResponse>
