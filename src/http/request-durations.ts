/**
 * Durations of requests by route. The hot path reads the clock twice and looks up one histogram; text is made when metrics are read.
 * The library `@prometheus-io/client` takes 230 ns for one observation, and loads OpenTelemetry.
 */
import { DURATIONS, Histogram } from '#base/statistics/histogram'
import { type Sample, sample } from '#base/statistics/snapshot'

const TICKS_PER_SECOND = 100_000

/** The labels of requests to unknown URLs: clients choose both, so they must not become labels. */
const UNKNOWN_ROUTE = 'unknown'
const OTHER_METHOD = 'other'

/** Methods that may be labels and names of spans. */
export const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The time in ticks of 10 µs, modulo 12 hours: as a small integer it is stored without an allocation. */
export const ticks = (): number => (performance.now() * (TICKS_PER_SECOND / 1_000)) | 0

export class RouteDurations {
  readonly #byMethod = new Map<string, Map<number, Histogram>>()

  /** @param start of the request, see {@link ticks}. */
  observe(method: string, status: number, start: number): void {
    const histogram = this.#byMethod.get(method)?.get(status) ?? this.#add(method, status)
    histogram.observe(((ticks() - start) >>> 0) / TICKS_PER_SECOND)
  }

  *samples(route: string): Generator<Sample> {
    for (const [method, byStatus] of this.#byMethod)
      for (const [status, { value }] of byStatus)
        yield sample(value, { method, route, status: String(status) })
  }

  #add(method: string, status: number): Histogram {
    const byStatus = this.#byMethod.get(method) ?? new Map<number, Histogram>()
    const histogram = new Histogram(DURATIONS)
    this.#byMethod.set(method, byStatus.set(status, histogram))
    return histogram
  }
}

export class RequestDurations {
  readonly #routes = new Map<string, RouteDurations>()

  /** @param url the route's template. With and without a slash at its end it is one route. */
  of(url: string): RouteDurations {
    const route = url.length > 1 && url.endsWith('/') ? url.slice(0, -1) : url
    const durations = this.#routes.get(route) ?? new RouteDurations()
    this.#routes.set(route, durations)
    return durations
  }

  observeUnknown(method: string, status: number, start: number): void {
    const label = METHODS.has(method) ? method : OTHER_METHOD
    this.of(UNKNOWN_ROUTE).observe(label, status, start)
  }

  get samples(): Sample[] {
    return [...this.#routes].flatMap(([route, durations]) => [...durations.samples(route)])
  }
}
