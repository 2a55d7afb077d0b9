import type { Command } from 'commander'
import type { Exports } from '../accounts/exports.ts'
import { serializeExportedUser } from '../accounts/serializers.ts'
import { toLines } from '../validation/ndjson.ts'
import { type DatabaseOptions, databaseCommand, option, words } from './options.ts'
import { count, print, write } from './output.ts'
import { stopSignal } from './progress.ts'
import { withStore } from './store.ts'
import { writeWhole } from './whole-file.ts'

interface ExportOptions extends DatabaseOptions {
  readonly passwordHashes?: boolean
  readonly file?: string
}

const exportToFile = async (exports: Exports, file: string, passwordHashes: boolean): Promise<void> => {
  let users = 0
  async function* texts() {
    for await (const page of exports.pages()) {
      users += page.length
      yield toLines(page.map(user => serializeExportedUser(user, passwordHashes)))
    }
  }
  await writeWhole(file, texts(), stopSignal())
  print(false, null, [`${count(users, 'user')} in ${file}`])
}

const exportUsers = ({ passwordHashes = false, file, ...options }: ExportOptions): Promise<void> =>
  withStore(options, async ({ exports }) => {
    if (file !== undefined) return exportToFile(exports, file, passwordHashes)
    for await (const page of exports.pages())
      await write(toLines(page.map(user => serializeExportedUser(user, passwordHashes))))
  })

export const usersExport = (users: Command): void => {
  databaseCommand(users, 'export', 'Write every user as a line of JSON, in order of creation')
    .option('--password-hashes', 'also the hashes of passwords, to import them elsewhere')
    .addOption(option('--file <file>', 'into a file for its owner alone, in place of standard output', words))
    .action(exportUsers)
}
