/** The channel on which transactions notify every instance of the users whose cached state they made stale. */
import pg from 'pg'

export const CHANNEL = 'gatehouse_changes'

/** Notifies of one user, as text that can stand in one message with a COMMIT. */
export const notifyText = (userId: string): string => `NOTIFY ${CHANNEL}, ${pg.escapeLiteral(userId)}`
