/** Every error has the same body. Each file can also be run alone. */
import './errors/error-table.test.ts'
import './errors/log-levels.test.ts'
import './errors/outages.test.ts'
import './errors/query-strings.test.ts'
import './errors/random-input.test.ts'
import './errors/redirects.test.ts'
import './errors/request-bodies.test.ts'
import './errors/unexpected-errors.test.ts'
