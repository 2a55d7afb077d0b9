/** Resources in the store. The writer thread of SQLite imports this module. */
import type { AuditEvent } from '#core/audit-log/event'
import { recordStatement } from '#core/audit-log/stored-events'
import {
  firstRow,
  type Query,
  query,
  type Statement,
  type Steps,
  unlessTaken,
} from '#storage/operations/operation'
import { endsAccess, invalidatesNothing, refusedFor, type Write } from '#storage/operations/write'
import { MAX_RESOURCES, RESOURCES_ID, type Resource, type ResourceOptions } from './resource.ts'
import type { ResourcesTable } from './stored-rows.ts'

/** Concerns no user. */
type ResourceEvent = AuditEvent<null>

/** The bound of their number is exact. */
const LOCK: Statement = { text: ({ lockByName }) => lockByName('$1'), values: ['oauth_resources'] }

const valuesOf = ({ identifier, name, scopes, clientIds }: ResourceOptions): readonly string[] => [
  identifier,
  name,
  JSON.stringify(scopes),
  JSON.stringify(clientIds),
]

function* addResource(
  id: string,
  resource: ResourceOptions,
  event: ResourceEvent,
): Steps<Write<'added' | 'tooManyResources' | 'identifierTaken'>> {
  yield LOCK
  const added = yield* unlessTaken({
    text: `INSERT INTO oauth_resources (id, identifier, name, scopes, client_ids, created_at, updated_at)
      SELECT $1, $2, $3, $4, $5, CAST($6 AS bigint), CAST($6 AS bigint)
      WHERE (SELECT count(*) FROM oauth_resources) < ${MAX_RESOURCES} RETURNING id`,
    values: [id, ...valuesOf(resource), event.at],
  })
  if (added === 'taken') return refusedFor(RESOURCES_ID, 'identifierTaken')
  if (added.length === 0) return invalidatesNothing('tooManyResources')
  yield recordStatement(event)
  return endsAccess(RESOURCES_ID, 'added')
}

/** @param updatedAt of the resource that the change was made of: of two changes at once, one is not done. */
function* changeResource(
  id: string,
  updatedAt: number,
  resource: ResourceOptions,
  event: ResourceEvent,
): Steps<Write<'changed' | 'resourceChanged' | 'identifierTaken'>> {
  const changed = yield* unlessTaken({
    text: `UPDATE oauth_resources SET identifier = $3, name = $4, scopes = $5, client_ids = $6, updated_at = $7
      WHERE id = $1 AND updated_at = $2 RETURNING id`,
    // Each change increases it, also within a millisecond.
    values: [id, updatedAt, ...valuesOf(resource), Math.max(event.at, updatedAt + 1)],
  })
  if (changed === 'taken') return refusedFor(RESOURCES_ID, 'identifierTaken')
  if (changed.length === 0) return refusedFor(RESOURCES_ID, 'resourceChanged')
  yield recordStatement(event)
  return endsAccess(RESOURCES_ID, 'changed')
}

function* removeResource(id: string, event: ResourceEvent): Steps<Write<boolean>> {
  const removed = yield* firstRow({
    text: 'DELETE FROM oauth_resources WHERE id = $1 RETURNING id',
    values: [id],
  })
  if (removed === undefined) return refusedFor(RESOURCES_ID, false)
  yield recordStatement(event)
  return endsAccess(RESOURCES_ID, true)
}

const resourceOf = (row: ResourcesTable): Resource => ({
  id: row.id,
  identifier: row.identifier,
  name: row.name,
  scopes: JSON.parse(row.scopes) as Record<string, string>,
  clientIds: JSON.parse(row.client_ids) as string[],
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/** In the order of their creation. */
const listResources = (): Query<readonly Resource[]> =>
  query(
    {
      name: 'resources',
      text: `SELECT id, identifier, name, scopes, client_ids, created_at, updated_at FROM oauth_resources ORDER BY id`,
      values: [],
    },
    (found: readonly ResourcesTable[]) => found.map(resourceOf),
  )

export const resourceOperations = { addResource, changeResource, removeResource }
export const resourceReads = { listResources }
