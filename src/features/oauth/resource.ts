/** Resources (RFC 8707): APIs beside Gatehouse that accept tokens which it issues. */

export interface ResourceOptions {
  /** A URI, which is `resource` of requests and `aud` of tokens. */
  readonly identifier: string
  readonly name: string
  /** Descriptions by scope, for the consent page. */
  readonly scopes: Readonly<Record<string, string>>
  /** The clients that may introspect tokens for it. */
  readonly clientIds: readonly string[]
}

/** Times are milliseconds since the epoch. */
export interface Resource extends ResourceOptions {
  readonly id: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** Resources in the store: all are in memory. */
export const MAX_RESOURCES = 1_000

/** The id under which instances cache the list of all resources. */
export const RESOURCES_ID = '00000000-0000-7000-8000-000000000707'

export const serializeResource = ({ createdAt, updatedAt, ...resource }: Resource) => ({
  ...resource,
  createdAt: new Date(createdAt).toISOString(),
  updatedAt: new Date(updatedAt).toISOString(),
})
