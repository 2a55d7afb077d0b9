/** Invalidations that threads share (docs/design.md, "Workers on SQLite"). */
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { newId } from '#base/ids'
import {
  InvalidationPublisher,
  InvalidationReceiver,
  newInvalidationBuffer,
} from '#storage/sqlite/invalidation-ring'

const ALL = 'all'

const receive = (buffer: SharedArrayBuffer) => {
  const received: string[] = []
  const receiver = new InvalidationReceiver(buffer, {
    invalidate: id => received.push(id),
    invalidateAll: () => received.push(ALL),
  })
  return {
    /** What has been delivered since the last call. */
    take: () => {
      receiver.deliver()
      return received.splice(0)
    },
  }
}

const setUp = () => {
  const buffer = newInvalidationBuffer()
  return {
    buffer,
    publisher: new InvalidationPublisher(buffer),
    first: receive(buffer),
    second: receive(buffer),
  }
}

const ids = (count: number): string[] => Array.from({ length: count }, () => newId(0))

t.test('every receiver gets every id once, in order, however many it takes at a time', async t => {
  const { publisher, first, second } = setUp()
  const published = ids(300)
  const taken: string[] = []
  for (let from = 0; from < published.length; from += 3) {
    publisher.publish(published.slice(from, from + 3))
    taken.push(...first.take())
  }
  t.strictSame(taken, published)
  t.strictSame(second.take(), published)
  t.strictSame([first.take(), second.take()], [[], []])
})

t.test('a receiver that starts later gets what is published from then on', async t => {
  const { buffer, publisher } = setUp()
  publisher.publish(ids(5))
  const late = receive(buffer)
  const [id = ''] = ids(1)
  publisher.publish([id])
  t.strictSame(late.take(), [id])
})

t.test('everyone is evicted where single ids cannot be delivered', async t => {
  const { publisher, first } = setUp()
  publisher.publishEveryone()
  t.strictSame(first.take(), [ALL])
  publisher.publish(ids(5_000))
  t.strictSame(first.take(), [ALL], 'many at once')
  publisher.publish(['not an id'])
  t.strictSame(first.take(), [ALL], 'an id of another form')
  for (let commit = 0; commit < 100; commit += 1) publisher.publish(ids(200))
  t.strictSame(first.take(), [ALL], 'a receiver that is far behind')
  const [id = ''] = ids(1)
  publisher.publish([id])
  t.strictSame(first.take(), [id], 'and then goes on')
})

t.test('the position overflows without a loss', async t => {
  const buffer = newInvalidationBuffer()
  const position = new Int32Array(buffer, 0, 1)
  for (const start of [2 ** 31 - 3, -3]) {
    position[0] = start
    const receiver = receive(buffer)
    const publisher = new InvalidationPublisher(buffer)
    const published = ids(6)
    for (const id of published) publisher.publish([id])
    t.strictSame(receiver.take(), published)
  }
})

/** Publishes as fast as it can. Each id ends with its number. */
const PUBLISHER = `
  import { workerData } from 'node:worker_threads'
  const { InvalidationPublisher } = await import(workerData.module)
  const publisher = new InvalidationPublisher(workerData.buffer)
  for (let number = 0; number < workerData.count; number += 1)
    publisher.publish(['00000000-0000-7000-8000-' + String(number).padStart(12, '0')])
`

t.test('a receiver beside a fast publisher gets each id, or evicts everyone', async t => {
  const buffer = newInvalidationBuffer()
  const position = new Int32Array(buffer, 0, 1)
  const count = 300_000
  const module = new URL('../../src/storage/sqlite/invalidation-ring.ts', import.meta.url).href
  /** Ids below it were delivered, or everyone was evicted after they were published. */
  let covered = 0
  const gaps: string[] = []
  const receiver = new InvalidationReceiver(buffer, {
    invalidate(id) {
      const number = Number(id.slice(-12))
      if (number > covered) gaps.push(`${number} after ${covered}`)
      covered = Math.max(covered, number + 1)
    },
    invalidateAll() {
      covered = Atomics.load(position, 0)
    },
  })
  const workerData = { buffer, count, module }
  const thread = new Worker(PUBLISHER, { eval: true, execArgv: ['--input-type=module'], workerData })
  let isRunning = true
  thread.once('exit', () => {
    isRunning = false
  })
  const deliver = () => {
    const published = Atomics.load(position, 0)
    receiver.deliver()
    if (covered < published) gaps.push(`${covered} of ${published}`)
  }
  while (isRunning) {
    deliver()
    await setImmediate()
  }
  deliver()
  t.equal(covered, count)
  t.strictSame(gaps, [])
})
