/** What the documents and the configuration say is held to what the code is. Each file runs by itself as well. */
import './documents/config.test.ts'
import './documents/docs.test.ts'
import './documents/documents.test.ts'
import './documents/left-behind.test.ts'
import './documents/openapi.test.ts'
import './documents/readme.test.ts'
import './documents/secrets.test.ts'
import './documents/specification.test.ts'
