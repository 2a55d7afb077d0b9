/** A feature with a job that a test chooses. */
import {
  defineFeature,
  hasLease,
  invalidatesNothing,
  type JobRun,
  type Steps,
  type Write,
} from '#feature/declaration'

function* isCurrent(lease: { readonly job: string; readonly fence: number }): Steps<Write<boolean>> {
  return invalidatesNothing(yield* hasLease(lease))
}

/** The job is `working.work`, once an hour. */
export const working = (run: (run: JobRun) => Promise<void>) =>
  defineFeature({
    name: 'working',
    module: import.meta.url,
    operations: { isCurrent },
    jobs: { work: { every: 3_600_000, run: (_, jobRun) => run(jobRun) } },
  })

export const feature = working(async () => undefined)
