/** The audit log, and how what is old goes. Each file runs by itself as well. */
import './events/events.test.ts'
import './events/clean-up.test.ts'
import './events/follow.test.ts'
import './events/client-disconnect.test.ts'
import './events/pages.test.ts'
import './events/rejections.test.ts'
import './events/throttled.test.ts'
