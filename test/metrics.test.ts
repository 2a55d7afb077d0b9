/** Metrics: values and examples. Each file can also be run alone. */
import './metrics/examples.test.ts'
import './metrics/values.test.ts'
