/** Traces: spans, and what they do not contain. Each file can also be run alone. */
import './tracing/modules.test.ts'
import './tracing/spans.test.ts'
