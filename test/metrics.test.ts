/** Metrics: values, listener, workers, examples. Each file can also be run alone. */
import './metrics/examples.test.ts'
import './metrics/listener.test.ts'
import './metrics/values.test.ts'
import './metrics/workers.test.ts'
