/** Traces: spans, and what they do not contain. Each file can also be run alone. */
import './tracing/spans.test.ts'
