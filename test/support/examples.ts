/** Tests of examples in a fork, which may have a feature of the same name. */
import type { Feature } from '#feature/declaration'
import { FEATURES } from '#features/own'

const names: readonly string[] = (FEATURES as readonly Feature[]).map(({ name }) => name)

/** The option of a test that adds the example to the service: a service has one feature of a name. */
export const unlessTaken = (name: string): { readonly skip: string | false } => ({
  skip: names.includes(name) && `src/features/own.ts has a feature ${name}`,
})
