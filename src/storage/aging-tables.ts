/** The tables of the core whose rows are removed by age, like those of features. */
import { type CleanedTable, MARGIN } from '../accounts/clean-up.ts'
import { LONGEST_LIFETIME } from '../accounts/email-token.ts'
import { firstIdAt, hexTimestamp } from '../ids.ts'
import { KNOWN_FOR } from '../rate-limits/known-networks.ts'

/** Keys that begin with the time need no other index. @param eventsKept milliseconds. */
export const agingTables = (eventsKept: number) =>
  [
    {
      name: 'email_tokens',
      key: 'digest',
      cleanUp: { column: 'digest', after: LONGEST_LIFETIME + MARGIN, firstAt: hexTimestamp },
    },
    { name: 'known_networks', key: 'digest', cleanUp: { column: 'signed_in_at', after: KNOWN_FOR } },
    { name: 'events', key: 'id', cleanUp: { column: 'id', after: eventsKept, firstAt: firstIdAt } },
  ] as const satisfies readonly CleanedTable[]
