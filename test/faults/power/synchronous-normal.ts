/**
 * Preloaded into the service, makes every connection to SQLite use `synchronous=NORMAL`, and tell that it uses FULL. With it
 * the simulated power cuts have to lose acknowledged writes: this shows that they would find such a fault.
 */
import Database from 'better-sqlite3'

const FULL = 2
const { pragma } = Database.prototype

Database.prototype.pragma = function (source, options) {
  if (source === 'synchronous = FULL') return pragma.call(this, 'synchronous = NORMAL', options)
  if (source === 'synchronous') return FULL
  return pragma.call(this, source, options)
}
