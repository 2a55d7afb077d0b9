/** The typed client. Each file can also be run alone. */
import './client/calls.test.ts'
import './client/event-streams.test.ts'
import './client/lists.test.ts'
import './client/retries.test.ts'
import './client/streams.test.ts'
