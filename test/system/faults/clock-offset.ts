/** Preloaded into the service. Shifts its clock by the milliseconds in the file CLOCK_OFFSET, and watches the file. */
import { readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const INTERVAL = 20

const { CLOCK_OFFSET } = process.env

if (isMainThread && CLOCK_OFFSET !== undefined) {
  const { now } = Date
  let text = readFileSync(CLOCK_OFFSET, 'utf8')
  Date.now = () => now() + Number(text)
  setInterval(() => {
    const next = readFileSync(CLOCK_OFFSET, 'utf8')
    if (next === text) return
    text = next
    process.stdout.write(`the clock is ${text} ms off\n`)
  }, INTERVAL).unref()
}
