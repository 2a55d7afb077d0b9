/** What a scenario is: one file in `scenarios/`, named in `scenarios/index.ts`. */
import type { Workspace } from './workspace.ts'

/** The requests of a load: one target, asked for with each of the tokens in turn. */
export interface Requests {
  readonly path: string
  /** Access tokens for `Authorization: Bearer`, one a request, in rotation; none: the header is not sent. */
  readonly tokens: readonly string[]
}

/** What the service and the yardstick need before they are started. */
export interface Prepared {
  readonly requests: Requests
  /** Environment variables of the service over those of every scenario. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Scenario {
  /** As given on the command line. */
  readonly name: string
  readonly title: string
  /** The module in `yardsticks/` that answers the same requests with the same bytes. */
  readonly yardstick: string
  /** Fills the store, before the service is started on it. */
  prepare(workspace: Workspace): Promise<Prepared>
}
