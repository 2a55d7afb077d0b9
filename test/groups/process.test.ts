/** The process: settings, commands, hosts, documents, observability. */
import '../cli.test.ts'
import '../config.test.ts'
import '../console.test.ts'
import '../documents.test.ts'
import '../embedding.test.ts'
import '../mail.test.ts'
import '../metrics.test.ts'
import '../tracing.test.ts'
