/**
 * Preloaded into the service and the yardstick alike (`--import`), changing neither: answers the bench's question for the
 * CPU time of the whole process, all threads included, and ends the process with the bench, however that ends.
 */
process.on('message', () => process.send?.(process.cpuUsage()))
process.on('disconnect', () => process.exit())
// A channel that is only listened to keeps no process alive.
process.channel?.unref()
