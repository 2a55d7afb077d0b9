/** The channel on which transactions notify every instance of users whose cached state is stale. */
import pg from 'pg'

export const CHANNEL = 'gatehouse_changes'

/** Notifies of one user; as text, so that it can be sent in one message with a COMMIT. */
export const notifyText = (userId: string): string => `NOTIFY ${CHANNEL}, ${pg.escapeLiteral(userId)}`
