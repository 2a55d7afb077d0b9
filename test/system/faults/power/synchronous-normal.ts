/**
 * Preloaded into the service. Every SQLite connection uses `synchronous=NORMAL` but reports FULL. The simulated power cuts
 * must then lose acknowledged writes, which proves that they would detect such an error.
 */
import Database from 'better-sqlite3'

const FULL = 2
const { pragma } = Database.prototype

Database.prototype.pragma = function (source, options) {
  if (source === 'synchronous = FULL') return pragma.call(this, 'synchronous = NORMAL', options)
  if (source === 'synchronous') return FULL
  return pragma.call(this, source, options)
}
