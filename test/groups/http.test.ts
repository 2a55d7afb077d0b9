/** HTTP: connections, errors, pages, and the client. */
import '../client.test.ts'
import '../errors.test.ts'
import '../http.test.ts'
import '../pages.test.ts'
