/** The channel on which transactions notify every instance of users and admin keys whose cached state is stale. */
import pg from 'pg'

export const CHANNEL = 'gatehouse_changes'

/** Notifies of one user or admin key; as text, so that it can be sent in one message with a COMMIT. */
export const notifyText = (id: string): string => `NOTIFY ${CHANNEL}, ${pg.escapeLiteral(id)}`
