/**
 * The fields that a team adds to users: add yours here, see docs/extending.md. Merges do not change this file, and the migrations of these
 * fields have numbers of their own.
 */
import type { TeamField } from './field-kinds.ts'

export const TEAM_FIELDS = {} as const satisfies Readonly<Record<string, TeamField>>
