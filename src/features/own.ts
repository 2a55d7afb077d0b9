/** The features of this service. Add yours here: see docs/extending.md. */
import type { Feature } from '#feature/declaration'

export const FEATURES = [] as const satisfies readonly Feature[]
