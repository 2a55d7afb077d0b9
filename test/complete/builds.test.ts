/** The bench's baselines, the package, the code of the documents, the client, and the OpenAPI document against every response. */
import '../client/generate.test.ts'
import '../documents/bench-baselines.test.ts'
import '../documents/extending.test.ts'
import '../documents/openapi.test.ts'
import '../embedding/package.test.ts'
