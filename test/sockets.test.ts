/** What arrives at real sockets. Each file runs by itself as well. */
import './sockets/empty.test.ts'
import './sockets/expiry.test.ts'
import './sockets/hot-path.test.ts'
import './sockets/one-interpretation.test.ts'
import './sockets/pipelining.test.ts'
import './sockets/slow.test.ts'
import './sockets/sockets.test.ts'
