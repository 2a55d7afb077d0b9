/** Upgrades from released versions. Each file can also be run alone. */
import './releases/migration.test.ts'
