/** The files of `seed` with access tokens: one for a load generator, or one for each of several. */
import { join, parse } from 'node:path'
import { AtomicFile } from './files.ts'

/** An account with the token that a load test sends for it. */
export interface SeededToken {
  /** `null` if the account was removed while it was seeded. */
  readonly id: string | null
  readonly email: string
  /** `null` if the account existed and has another password than the given one. */
  readonly password: string | null
  /** `null` if the account is disabled or was removed. */
  readonly token: string | null
}

interface Format {
  readonly header: string
  readonly hasPasswords: boolean
  /** @param url of the service. */
  readonly text: (account: SeededToken, url: string) => string
}

const COLUMNS = ['id', 'email', 'password', 'token'] as const

/** RFC 4180 §2. */
const csvField = (value: string): string =>
  /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value

const csvRecord = (values: readonly (string | null)[]): string =>
  `${values.map(value => csvField(value ?? '')).join(',')}\r\n`

/** A target of vegeta (`-format=json`). An account without a token is no target. */
const vegetaTarget = ({ token }: SeededToken, url: string): string => {
  if (token === null) return ''
  const header = { Authorization: [`Bearer ${token}`] }
  return `${JSON.stringify({ method: 'GET', url: `${url}/account`, header })}\n`
}

const FORMATS = {
  tokens: { header: '', hasPasswords: false, text: ({ token }) => `${token ?? ''}\n` },
  jsonl: {
    header: '',
    hasPasswords: true,
    text: ({ id, email, password, token }) => `${JSON.stringify({ id, email, password, token })}\n`,
  },
  csv: {
    header: csvRecord(COLUMNS),
    hasPasswords: true,
    text: account => csvRecord(COLUMNS.map(column => account[column])),
  },
  vegeta: { header: '', hasPasswords: false, text: vegetaTarget },
} as const satisfies Record<string, Format>

export type FormatName = keyof typeof FORMATS

export const FORMAT_NAMES = Object.keys(FORMATS) as FormatName[]

/** @returns `tokens.1.txt` for `tokens.txt` and the first shard. */
const shardOf = (file: string, shard: number): string => {
  const { dir, name, ext } = parse(file)
  return join(dir, `${name}.${shard}${ext}`)
}

export interface TokenFilesOptions {
  readonly file: string
  readonly format: FormatName
  /** The number of files; `null`: one, without a number in its name. */
  readonly shards: number | null
  readonly url: string
}

/** The accounts are dealt out to the files in turn, so that each account stays in its file when accounts are added. */
export class TokenFiles {
  readonly paths: readonly string[]
  readonly #files: readonly AtomicFile[]
  readonly #format: Format
  readonly #url: string
  #count = 0

  private constructor(paths: readonly string[], files: readonly AtomicFile[], format: Format, url: string) {
    this.paths = paths
    this.#files = files
    this.#format = format
    this.#url = url
  }

  /** @throws {CommandError} if a file cannot be written. */
  static async open({ file, format, shards, url }: TokenFilesOptions): Promise<TokenFiles> {
    const paths =
      shards === null ? [file] : Array.from({ length: shards }, (_, index) => shardOf(file, index + 1))
    const files: AtomicFile[] = []
    const opened = new TokenFiles(paths, files, FORMATS[format], url)
    try {
      for (const path of paths) files.push(await AtomicFile.open({ namedBy: '--tokens', path }))
      for (const each of files) await each.write(opened.#format.header)
    } catch (error) {
      await opened.discard()
      throw error
    }
    return opened
  }

  /** Whether the files contain passwords, which take time to compare. */
  get hasPasswords(): boolean {
    return this.#format.hasPasswords
  }

  async write(accounts: readonly SeededToken[]): Promise<void> {
    const texts = this.#files.map(() => '')
    for (const account of accounts) {
      texts[this.#count % texts.length] += this.#format.text(account, this.#url)
      this.#count += 1
    }
    for (const [index, file] of this.#files.entries()) await file.write(texts[index] ?? '')
  }

  async commit(): Promise<void> {
    for (const file of this.#files) await file.commit()
  }

  /** Leaves earlier files as they are. Does nothing after {@link commit}. */
  async discard(): Promise<void> {
    for (const file of this.#files) await file.discard()
  }
}
