/** Traces: spans, what they do not contain, the SDK, hosts. Each file can also be run alone. */
import './tracing/modules.test.ts'
import './tracing/spans.test.ts'
