/** The tables of the core whose rows are removed by age, like those of features. */
import { type CleanedTable, MARGIN } from '../accounts/clean-up.ts'
import { LONGEST_LIFETIME } from '../accounts/email-token.ts'
import { firstIdAt, hexTimestamp } from '../ids.ts'

/** Their keys begin with the time, so they need no other index. @param eventsKept milliseconds. */
export const agingTables = (eventsKept: number) =>
  [
    {
      name: 'email_tokens',
      key: 'digest',
      cleanUp: { column: 'digest', after: LONGEST_LIFETIME + MARGIN, firstAt: hexTimestamp },
    },
    { name: 'events', key: 'id', cleanUp: { column: 'id', after: eventsKept, firstAt: firstIdAt } },
  ] as const satisfies readonly CleanedTable[]
