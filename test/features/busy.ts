/** A feature with a background task that a test chooses. */
import { defineFeature, type Feature } from '#feature/declaration'

export const feature = defineFeature({ name: 'busy', module: import.meta.url })

/** The task is `busy.work`. */
export const busy = (work: (signal: AbortSignal, now: number) => Promise<void>): Feature => ({
  ...feature,
  backgroundTasks: { work: ({ clock }, signal) => work(signal, clock()) },
})
