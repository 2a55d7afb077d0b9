/** Sends one request at a fixed rate, as the messages of the bench say, and returns the latencies by status. */
import type { SocketOrder } from './remote-sockets.ts'
import { runSockets } from './sockets.ts'

process.on('message', async ({ request, ...load }: SocketOrder) => {
  const { latencies } = await runSockets({ ...load, next: () => request })
  process.send?.([...latencies])
})
process.on('disconnect', () => process.exit())
