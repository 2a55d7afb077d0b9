/** Documents and the repository agree with the code. Each file can also be run alone. */
import './documents/docs-pages.test.ts'
import './documents/documents.test.ts'
import './documents/examples.test.ts'
import './documents/operations.test.ts'
import './documents/security.test.ts'
import './documents/specification.test.ts'
