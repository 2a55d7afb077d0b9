/**
 * What the migrations of this version record in a database. SQLite recognises an up-to-date database by it, without loading the
 * migrations. Tests compare it with them.
 */
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

/** The checksums of the built-in features on SQLite, by feature and migration. */
export const SQLITE_CHECKSUMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'admin-keys': {
    '0001_admin_keys': 'b173428c1f86bf9322e317d5e553362e7aee81fccaf00498beb70ac5dbf442a2',
    '0002_users_identity': '2868298bb4c6c5aae7e7eb64442d5cf768459fbd9c24e8c202dd7b0732720d1f',
  },
  'api-keys': { '0001_api_keys': 'db4b421f12fcd761e989ac7f626f0d63efa9a11d9e3760e3dfec2451bc2c30c8' },
  'email-codes': { '0001_email_codes': '7de710ddc913dba05062d174c940ceb6b386ac598fe0d87232691ed3342c7b22' },
  passkeys: { '0001_passkeys': '93e0e92f1db0527361ca28fafe1e8ca646af610e839ed89f01a0a1b8e1534b8e' },
  'pending-sign-ups': {
    '0001_pending_sign_ups': 'cf7880080ad86e8dba1d94b4467e28efc14e22792d7f87c3abdc1baf846b7899',
  },
  totp: { '0001_totp': '73deb1ee7af1c05b46ccdc47244887bb97e900878a2cb96d2eaeab9029a804d8' },
}
