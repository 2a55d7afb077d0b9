/** What tests of the known schema have in common: the recorded checksums, and whether a start loads the query builder. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

type Checksums = Readonly<Record<string, Readonly<Record<string, string>>>>

/** Of the migrations of the built-in features, by feature and migration. Migrations that ran never change, so these never change. */
export const CHECKSUMS: Readonly<Record<'sqlite' | 'postgres', Checksums>> = {
  sqlite: {
    'admin-keys': {
      '0001_admin_keys': 'b173428c1f86bf9322e317d5e553362e7aee81fccaf00498beb70ac5dbf442a2',
      '0002_users_identity': '2868298bb4c6c5aae7e7eb64442d5cf768459fbd9c24e8c202dd7b0732720d1f',
    },
    'api-keys': { '0001_api_keys': 'db4b421f12fcd761e989ac7f626f0d63efa9a11d9e3760e3dfec2451bc2c30c8' },
    console: {
      '0001_console': '2368748e3df297c253618c8c51525d907275e4e63c11730ff74b503109ff5b22',
    },
    consumers: { '0001_consumers': 'd316be72ee96194a4267f4eb16d643deaa344dfd38ad738d3cd8bd289776c578' },
    'email-codes': {
      '0001_email_codes': '7de710ddc913dba05062d174c940ceb6b386ac598fe0d87232691ed3342c7b22',
      '0002_magic_links': '5d2befc1c2b4b0a41cab2af9ce7d4a4ad7eebac4a274c381a2ff9bda480236eb',
      '0003_known_networks': 'eba1cfa7707bb23944b7c39750360ab48e2390d9a54792c84ae3baded480c0cf',
    },
    identities: { '0001_identities': 'ee33707cab487e90231fed07c33d0c86e0a63fc6ce4965e35e4d261a3f3c6061' },
    jobs: { '0001_job_leases': 'd09e89cd09cc745f77a449b8c78c9caccd6ed8238a377bd7d5c82d0cb29a575e' },
    oauth: {
      '0001_oauth': 'f698b91333a35cb4e57678ddd212b8b506be06b58c4a7200eb5cd3833fcc609a',
      '0002_organizations': '99c122e9cd1c4e378afa34b6a4c75f9ed4bf0a43858114abc35585bef81ce8cc',
      '0003_clients': 'ac302560afa2905f363e8a67fb1e78cba10f42f0287cad2cfd7895027d0b5889',
      '0004_device_requests': 'ae60e5cb86aad7ea279c5a930a231ba9a65620dc0b52108e95eaea8330009614',
      '0005_bound_grants': '27a35282d1b288ed2b6e50596329fb0193b5a818561325a11cb67795c8e1220c',
      '0006_sign_ins': '32dff63feceba067c1f8015c539933aae5fbb6f40527320f799bdbda24c79340',
    },
    organizations: {
      '0001_organizations': '31eb525e7ff1a00b6addcc1aa32662d5445b2f5244e6dff2b3a18f87d70bc120',
    },
    passkeys: { '0001_passkeys': '93e0e92f1db0527361ca28fafe1e8ca646af610e839ed89f01a0a1b8e1534b8e' },
    'pending-sign-ups': {
      '0001_pending_sign_ups': 'cf7880080ad86e8dba1d94b4467e28efc14e22792d7f87c3abdc1baf846b7899',
      '0002_fields': '7357a142f8d0bc2e995d440f8e72eda73fbc42d7e163c999235c97f4690d9d0f',
    },
    'return-targets': {
      '0001_return_targets': '1950de9d615b1507dcbd32f48059e2e18e0b0049f39af6707d85bb6f079d8a81',
    },
    totp: { '0001_totp': '73deb1ee7af1c05b46ccdc47244887bb97e900878a2cb96d2eaeab9029a804d8' },
    webhooks: { '0001_webhooks': '9d5098c91ec8133afc4e853a3db6b8776038c23bb4e6f28fa2739739cf28f0d5' },
  },
  postgres: {
    'admin-keys': {
      '0001_admin_keys': '9e0dda18a53376981b08f335ab22757d4c53ded4c71fb881d0910f2ebfa239fb',
      '0002_users_identity': '673275f4b3ebc454d6c1f619e0f417e7ccceeb0c26298248c3f217d4c1bb2195',
    },
    'api-keys': { '0001_api_keys': '459cd1723b64b04c269f0f4d166298dcd91b2984ce4788b6d64c937442e628e4' },
    console: {
      '0001_console': 'a8d626c52b6f6a8a8d499bcb2719b55df79e3b04328df8af0644528b4495d6c5',
    },
    consumers: { '0001_consumers': '7c06e01b326637daa454f3a449ba5502aae062b878273afbb544b73e8d18d693' },
    'email-codes': {
      '0001_email_codes': '65951d5e0a9c9d9597559c54126ab22857e6ca8ba19f5f0997bccdbad9ff08e1',
      '0002_magic_links': '6f06b4fe97d6a37c2ad1b61c7bdc4d062e85219997b5d7092b10f29599d1f9b1',
      '0003_known_networks': 'b55675a284dd79513ae88d787f6a6e15c40d750b15ad7eabb700e559aa7442d4',
    },
    identities: { '0001_identities': 'd3f3cbf6e924682ff803154a59fd9a9d34ca1bce140bf296e037898c368fcbff' },
    jobs: { '0001_job_leases': 'f974200998a4e6e7b7db3461b29adafdc04c320269115dc980783fa57212158d' },
    oauth: {
      '0001_oauth': '4e2f1f9ad10635ec02492757ef0a7d0b58c6058244e5e74eb7c851c055e25213',
      '0002_organizations': '5a73d396cd04be3ae08269bd0f88f6d952bd220cca9e274ca810bc01a02773bc',
      '0003_clients': '80e38a7399d3a29a61fd544575a9b7297ec3c06d3e84c46eadc3634a94103f72',
      '0004_device_requests': 'cff1faedc97db8de52eba5494cd943b2cb1cbb0dc55b19b1a27fa6e4eea838a1',
      '0005_bound_grants': '5069330f9d0ff03171d5204bbcdb7a837cd0869d88c87b1f3db035ea38e42662',
      '0006_sign_ins': '031ea7a1528bee86fec74d9ba4fea34dfd732708a59f3bc3be156ecdc83ddcd9',
    },
    organizations: {
      '0001_organizations': 'b31ed427bcaca827c2ece8e7628fea897d0a0fcff31de644377733c087f75dc7',
    },
    passkeys: { '0001_passkeys': '5d3dccc870cf4c3db7610550d207053986998a3ca5804c161d8ea4e44ad40eac' },
    'pending-sign-ups': {
      '0001_pending_sign_ups': '72794c697e63c1c5a548d7a718ed5bf47c5bf8d0bbede6355d66518cc4565adc',
      '0002_fields': '5ac9cebe917bfdd0178173a8e89f688ef6fead35347d3e4beca99b6c89995147',
    },
    'return-targets': {
      '0001_return_targets': '64ebce41457259fa668e406936d491c62ca560f8eaf0a7fc45039faa48e59643',
    },
    totp: { '0001_totp': '2182c28107ef2421a145c3c2352c612f5588150facb27909e6e9148a557eb86f' },
    webhooks: { '0001_webhooks': '0623a5feb6263a0baef2afeb9c9be29e4d99e5ed09953d646a08b0a12084be10' },
  },
}

const WATCH = `
import { registerHooks } from 'node:module'
let loads = false
registerHooks({
  load(url, context, next) {
    loads ||= url.includes('/kysely/')
    return next(url, context)
  },
})
const { BUILT_IN_FEATURES } = await import('./src/features/built-in.ts')
const { notes } = await import('./examples/notes/notes.ts')
const things = {
  name: 'things',
  module: import.meta.url,
  migrations: {
    '0001_things': {
      async up(db, { text }) {
        await db.schema.createTable('things').addColumn('id', text, column => column.primaryKey()).execute()
      },
    },
  },
}
`

/**
 * @param statements open the store with `BUILT_IN_FEATURES`, `notes`, and `things`, whose migration is a function of Kysely. The database is `process.env.DATABASE`.
 * @throws {Error} if they print an error.
 */
export const loadsQueryBuilder = (statements: string, database: string): boolean => {
  const cwd = join(import.meta.dirname, '..', '..')
  const script = `${WATCH}${statements}\nprocess.stdout.write(String(loads))`
  const env = { ...process.env, DATABASE: database }
  const args = ['--input-type=module', '--eval', script]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' })
  if (stderr !== '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** The rows of `feature_migrations` as they stand in the known schema. */
export const checksumsOf = (rows: readonly object[]): Record<string, Record<string, string>> => {
  const checksums: Record<string, Record<string, string>> = {}
  for (const { feature, name, checksum } of rows as Record<'feature' | 'name' | 'checksum', string>[])
    checksums[feature] = { ...checksums[feature], [name]: checksum }
  return checksums
}
