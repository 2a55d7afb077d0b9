/** Metrics: values, listener, workers. Each file can also be run alone. */
import './metrics/listener.test.ts'
import './metrics/values.test.ts'
import './metrics/workers.test.ts'
