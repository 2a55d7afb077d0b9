/** The one error body, for every refusal and every fault. Each file runs by itself as well. */
import './errors/bodies.test.ts'
import './errors/log-levels.test.ts'
import './errors/properties.test.ts'
import './errors/query-strings.test.ts'
import './errors/redirect.test.ts'
import './errors/table.test.ts'
import './errors/unforeseen.test.ts'
