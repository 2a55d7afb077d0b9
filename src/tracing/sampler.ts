/** `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`, which the SDK leaves to its caller. */
import { getNumberFromEnv, getStringFromEnv } from '@opentelemetry/core'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'

const DEFAULT = 'parentbased_always_on'

const PARENT_BASED = 'parentbased_'

const ROOTS: Readonly<Record<string, () => Sampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: () => new TraceIdRatioBasedSampler(getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1),
}

/** @param warn called with a sentence if there is no such sampler; then it is the default one. */
export const samplerOfEnvironment = (warn: (message: string) => void): Sampler => {
  const given = getStringFromEnv('OTEL_TRACES_SAMPLER')?.trim() ?? DEFAULT
  const root = ROOTS[given.replace(PARENT_BASED, '')]
  if (root === undefined) {
    warn(`OTEL_TRACES_SAMPLER ${JSON.stringify(given)} is not supported: ${DEFAULT} is used`)
    return new ParentBasedSampler({ root: new AlwaysOnSampler() })
  }
  return given.startsWith(PARENT_BASED) ? new ParentBasedSampler({ root: root() }) : root()
}
