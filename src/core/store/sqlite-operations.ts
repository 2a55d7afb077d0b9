/** The writes of the service for the writer thread of SQLite, which imports this module. */
export { prepareLastRequestOperations as prepareHandWritten } from '../auth/sqlite-last-requests.ts'
export { operationsOf } from './operations.ts'
