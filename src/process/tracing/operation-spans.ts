/** Database client spans: one for each operation of the store that runs for a request that is traced (docs/design.md, "Observability"). */
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  ATTR_DB_OPERATION_NAME,
  ATTR_DB_SYSTEM_NAME,
  ATTR_ERROR_TYPE,
  DB_SYSTEM_NAME_VALUE_POSTGRESQL,
} from '@opentelemetry/semantic-conventions'
import type { OperationRecorder } from '#core/store/with-recorder'
import type { StorageLocation } from '#storage/location'
import packageJson from '../../../package.json' with { type: 'json' }

const SYSTEMS = { sqlite: 'sqlite', postgres: DB_SYSTEM_NAME_VALUE_POSTGRESQL }

/** The type of an error, without its message, which may contain what a client sent. */
const errorType = (error: unknown): string => {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error ? String(error.code) : error.name
}

/** Records operations as children of the active span. Without one that records, an operation costs one lookup. */
export const operationSpans = (engine: StorageLocation['engine']): OperationRecorder => {
  const tracer = trace.getTracer(packageJson.name, packageJson.version)
  const system = SYSTEMS[engine]
  return {
    record(name, run) {
      // Work that a request has started and not waited for runs with its span, which has ended.
      if (trace.getActiveSpan()?.isRecording() !== true) return run()
      const span = tracer.startSpan(name, {
        kind: SpanKind.CLIENT,
        attributes: { [ATTR_DB_SYSTEM_NAME]: system, [ATTR_DB_OPERATION_NAME]: name },
      })
      const fail = (error: unknown): void => {
        span.setAttribute(ATTR_ERROR_TYPE, errorType(error)).setStatus({ code: SpanStatusCode.ERROR }).end()
      }
      try {
        const result = run()
        if (result instanceof Promise) result.then(() => span.end(), fail)
        else span.end()
        return result
      } catch (error) {
        fail(error)
        throw error
      }
    },
  }
}
