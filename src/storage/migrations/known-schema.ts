/**
 * What the migrations of this version record in a database. A start recognises an up-to-date database by it, without loading the
 * migrations. Tests compare it with them.
 */
import type { StoredFeature } from '../stored-feature.ts'

export const MIGRATIONS = [
  '0001_accounts',
  '0002_account_life',
  '0003_event_positions',
  '0004_email_tokens',
  '0005_user_record',
  '0006_admin_keys',
  '0007_reauthentication',
  '0008_factors',
  '0009_known_networks',
  '0010_notice_tokens',
] as const

export type MigrationName = (typeof MIGRATIONS)[number]

type Checksums = Readonly<Record<string, Readonly<Record<string, string>>>>

/** The checksums of the built-in features on each engine, by feature and migration. */
export const CHECKSUMS: Readonly<Record<'sqlite' | 'postgres', Checksums>> = {
  sqlite: {
    'admin-keys': {
      '0001_admin_keys': 'b173428c1f86bf9322e317d5e553362e7aee81fccaf00498beb70ac5dbf442a2',
      '0002_users_identity': '2868298bb4c6c5aae7e7eb64442d5cf768459fbd9c24e8c202dd7b0732720d1f',
    },
    'api-keys': { '0001_api_keys': 'db4b421f12fcd761e989ac7f626f0d63efa9a11d9e3760e3dfec2451bc2c30c8' },
    'email-codes': { '0001_email_codes': '7de710ddc913dba05062d174c940ceb6b386ac598fe0d87232691ed3342c7b22' },
    jobs: { '0001_job_leases': 'd09e89cd09cc745f77a449b8c78c9caccd6ed8238a377bd7d5c82d0cb29a575e' },
    passkeys: { '0001_passkeys': '93e0e92f1db0527361ca28fafe1e8ca646af610e839ed89f01a0a1b8e1534b8e' },
    'pending-sign-ups': {
      '0001_pending_sign_ups': 'cf7880080ad86e8dba1d94b4467e28efc14e22792d7f87c3abdc1baf846b7899',
    },
    totp: { '0001_totp': '73deb1ee7af1c05b46ccdc47244887bb97e900878a2cb96d2eaeab9029a804d8' },
  },
  postgres: {
    'admin-keys': {
      '0001_admin_keys': '9e0dda18a53376981b08f335ab22757d4c53ded4c71fb881d0910f2ebfa239fb',
      '0002_users_identity': '673275f4b3ebc454d6c1f619e0f417e7ccceeb0c26298248c3f217d4c1bb2195',
    },
    'api-keys': { '0001_api_keys': '459cd1723b64b04c269f0f4d166298dcd91b2984ce4788b6d64c937442e628e4' },
    'email-codes': { '0001_email_codes': '65951d5e0a9c9d9597559c54126ab22857e6ca8ba19f5f0997bccdbad9ff08e1' },
    jobs: { '0001_job_leases': 'f974200998a4e6e7b7db3461b29adafdc04c320269115dc980783fa57212158d' },
    passkeys: { '0001_passkeys': '5d3dccc870cf4c3db7610550d207053986998a3ca5804c161d8ea4e44ad40eac' },
    'pending-sign-ups': {
      '0001_pending_sign_ups': '72794c697e63c1c5a548d7a718ed5bf47c5bf8d0bbede6355d66518cc4565adc',
    },
    totp: { '0001_totp': '2182c28107ef2421a145c3c2352c612f5588150facb27909e6e9148a557eb86f' },
  },
}

/** A migration that has run. Those of the core have no feature and no checksum. */
export interface RecordedMigration {
  readonly feature: string | null
  readonly name: string
  readonly checksum: string | null
}

/** Selects every {@link RecordedMigration}. Fails on a database without migrations. */
export const SELECT_RECORDED = `SELECT NULL AS feature, name, NULL AS checksum FROM kysely_migration
  UNION ALL SELECT feature, name, checksum FROM feature_migrations`

const hasSameKeys = (left: object, right: object): boolean =>
  Object.keys(left).sort().join() === Object.keys(right).sort().join()

/** Whether exactly the migrations of a built-in feature have run. `false` for other features, whose checksums are not known. */
const hasRun = (
  { name, migrations = {} }: StoredFeature,
  checksums: Checksums,
  rows: readonly RecordedMigration[],
): boolean => {
  const known = checksums[name]
  if (known === undefined || !hasSameKeys(known, migrations)) return false
  const recorded = Object.fromEntries(
    rows.filter(row => row.feature === name).map(row => [row.name, row.checksum]),
  )
  return hasSameKeys(known, recorded) && Object.keys(known).every(key => known[key] === recorded[key])
}

/** Whether a database has exactly the schema of this version and these features. @param rows see {@link SELECT_RECORDED}. */
export const isKnownSchema = (
  engine: keyof typeof CHECKSUMS,
  rows: readonly RecordedMigration[],
  features: readonly StoredFeature[],
): boolean => {
  const names = rows.filter(({ feature }) => feature === null).map(({ name }) => name)
  return (
    names.sort().join() === MIGRATIONS.join() &&
    features.every(feature => hasRun(feature, CHECKSUMS[engine], rows))
  )
}
