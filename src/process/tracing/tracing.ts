/**
 * Traces of the standalone service (docs/design.md, "Observability"). This module loads OpenTelemetry, so it is imported only if
 * `tracesUrl` is configured. The SDK reads its own settings from the standard variables, `OTEL_…`.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { context, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  getBooleanFromEnv,
  getNumberFromEnv,
  getStringFromEnv,
  setGlobalErrorHandler,
  W3CTraceContextPropagator,
} from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type BatchSpanProcessorOptions,
  ParentBasedSampler,
  type Sampler as SpanSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { ATTR_SERVICE_NAME, ATTR_SERVICE_VERSION } from '@opentelemetry/semantic-conventions'
import type { FastifyInstance } from 'fastify'
import type { BaseLogger } from 'pino'
import { Sampler } from '#base/concurrency/sampler'
import type { OperationRecorder } from '#core/store/with-recorder'
import type { StorageLocation } from '#storage/location'
import packageJson from '../../../package.json' with { type: 'json' }
import { SHUTDOWN } from '../shutdown.ts'
import { operationSpans } from './operation-spans.ts'
import { addRequestSpans } from './request-spans.ts'

export interface Tracing {
  /** Must be called before plugins add hooks. */
  addRequestSpans(app: FastifyInstance): void
  recorderOf(engine: StorageLocation['engine']): OperationRecorder
  /** Sends the spans that wait, for at most {@link SHUTDOWN}`.traces` milliseconds. */
  close(): Promise<void>
}

type TracingLogger = Pick<BaseLogger, 'warn'>

/** What is detected later has precedence. Every process is an instance of its own, also with `WORKERS`. */
const resourceOfProcess = (): Resource =>
  defaultResource()
    .merge(detectResources({ detectors: [serviceInstanceIdDetector] }))
    .merge(
      resourceFromAttributes({
        [ATTR_SERVICE_NAME]: packageJson.name,
        [ATTR_SERVICE_VERSION]: packageJson.version,
      }),
    )
    .merge(detectResources({ detectors: [envDetector] }))

const BATCH_VARIABLES = {
  scheduledDelayMillis: 'OTEL_BSP_SCHEDULE_DELAY',
  exportTimeoutMillis: 'OTEL_BSP_EXPORT_TIMEOUT',
  maxQueueSize: 'OTEL_BSP_MAX_QUEUE_SIZE',
  maxExportBatchSize: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
} as const satisfies Partial<Record<keyof BatchSpanProcessorOptions, string>>

/** Options of batches from the environment. Without a variable, the SDK's default applies. */
const batchOptions = (): Omit<BatchSpanProcessorOptions, 'exporter'> =>
  Object.fromEntries(
    Object.entries(BATCH_VARIABLES).flatMap(([option, variable]) => {
      const value = getNumberFromEnv(variable)
      return value === undefined ? [] : [[option, value]]
    }),
  )

/** Each kind of problem is logged once a minute: while the collector is unreachable, every batch fails. */
const problemLog = (logger: TracingLogger) => {
  const sampler = new Sampler(Date.now)
  const warn = (name: string, detail: object, message: string): void => {
    const suppressed = sampler.take(name, '')
    if (suppressed !== null) logger.warn({ ...detail, ...(suppressed > 0 && { suppressed }) }, message)
  }
  return {
    onExportFailure: (err: unknown): void =>
      warn('export', { err }, 'spans could not be sent, they are lost'),
    onDiagnosis: (text: string): void => warn(text.replaceAll(/\d+/g, '#'), {}, `OpenTelemetry: ${text}`),
  }
}

const DEFAULT_SAMPLER = 'parentbased_always_on'

const PARENT_BASED = 'parentbased_'

const ROOT_SAMPLERS: Readonly<Record<string, () => SpanSampler>> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: () => new TraceIdRatioBasedSampler(getNumberFromEnv('OTEL_TRACES_SAMPLER_ARG') ?? 1),
}

/**
 * `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`, which the SDK leaves to its caller.
 * @param warn called with a sentence if there is no such sampler; then it is the default one.
 */
const samplerOfEnvironment = (warn: (message: string) => void): SpanSampler => {
  const given = getStringFromEnv('OTEL_TRACES_SAMPLER')?.trim() ?? DEFAULT_SAMPLER
  const root = ROOT_SAMPLERS[given.replace(PARENT_BASED, '')]
  if (root === undefined) {
    warn(`OTEL_TRACES_SAMPLER ${JSON.stringify(given)} is not supported: ${DEFAULT_SAMPLER} is used`)
    return new ParentBasedSampler({ root: new AlwaysOnSampler() })
  }
  return given.startsWith(PARENT_BASED) ? new ParentBasedSampler({ root: root() }) : root()
}

const ignore = (): void => undefined

/**
 * Registers the SDK for this process, so that features can add spans of their own with `@opentelemetry/api`.
 * @param url of the collector, for OTLP over HTTP as JSON.
 * @returns `null` if `OTEL_SDK_DISABLED` is `true`.
 */
export const startTracing = (url: string, logger: TracingLogger): Tracing | null => {
  const { onExportFailure, onDiagnosis } = problemLog(logger)
  diag.setLogger(
    { error: onDiagnosis, warn: onDiagnosis, info: ignore, debug: ignore, verbose: ignore },
    DiagLogLevel.WARN,
  )
  if (getBooleanFromEnv('OTEL_SDK_DISABLED')) return null
  setGlobalErrorHandler(onExportFailure)
  const protocol = getStringFromEnv('OTEL_EXPORTER_OTLP_PROTOCOL')
  if (protocol !== undefined && protocol !== 'http/json')
    logger.warn(`OTEL_EXPORTER_OTLP_PROTOCOL ${JSON.stringify(protocol)} is not supported: http/json is used`)
  const provider = new TracerProvider({
    resource: resourceOfProcess(),
    sampler: samplerOfEnvironment(message => logger.warn(message)),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }), ...batchOptions() })],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(provider)
  return {
    addRequestSpans,
    recorderOf: operationSpans,
    async close() {
      const sent = provider.shutdown().catch(onExportFailure)
      const limit = delay(SHUTDOWN.traces, 'late' as const, { ref: false })
      if ((await Promise.race([sent, limit])) === 'late')
        logger.warn('the last spans could not be sent in time, they are lost')
    },
  }
}
