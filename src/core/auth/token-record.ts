/** The binary form of a principal with its user, about 850 bytes, from which both are created again. */

import { type Factor, NO_FACTORS } from '../users/factors.ts'
import { compileFields, FIELDS, type FieldValues } from '../users/fields.ts'
import { accountTextOf } from '../users/serializers.ts'
import type { User } from '../users/user.ts'
import type { CachedClient } from './client-tokens.ts'
import { type CachedUser, NEVER, type Principal } from './principal.ts'
import { MAX_RECORD, type RecordLog, type Segment } from './record-log.ts'
import { NO_AMR } from './session.ts'

/** A copy: V8 keeps a whole header field (up to 16 KB of cookies) as long as a token that was sliced from it. */
export const copyString = (text: string): string => Buffer.from(text).toString()

/** Places of the numbers, in 64-bit units. */
const NUMBER = {
  userSlot: 0,
  userChanges: 1,
  usedAt: 2,
  userKey: 3,
  userRequestAt: 4,
  lastRequestAt: 5,
  storedRequestAt: 6,
  authenticatedAt: 7,
  expiresAt: 8,
  createdAt: 9,
  updatedAt: 10,
  version: 11,
} as const

const NUMBERS = Object.keys(NUMBER).length

/** Places of lengths, flags, and of the start and end of strings, in 16-bit units. */
const UNIT = {
  tokenLength: NUMBERS * 4,
  textLength: NUMBERS * 4 + 1,
  width: NUMBERS * 4 + 2,
  emailVerified: NUMBERS * 4 + 3,
  /** The account is the start of the text. */
  accountLength: NUMBERS * 4 + 4,
  isHot: NUMBERS * 4 + 5,
  id: NUMBERS * 4 + 6,
  email: NUMBERS * 4 + 8,
  credentialId: NUMBERS * 4 + 10,
  scopes: NUMBERS * 4 + 12,
  impersonatedBy: NUMBERS * 4 + 14,
  factors: NUMBERS * 4 + 16,
  amr: NUMBERS * 4 + 18,
  hasPassword: NUMBERS * 4 + 20,
  clientId: NUMBERS * 4 + 22,
  /** The first field of the user; the others follow. */
  fields: NUMBERS * 4 + 24,
} as const

/** Bytes before the token, which the text follows. */
const HEADER = (UNIT.fields + FIELDS.length * 2) * 2

const NULL = 0xffff

const WIDE = /[^\0-\xff]/

const listText = (list: readonly string[]): string | null => (list.length === 0 ? null : JSON.stringify(list))

const fromJson = <Value>(text: string | null, absent: Value): Value =>
  text === null ? absent : (JSON.parse(text) as Value)

const stringAt = (text: string, units: Uint16Array, place: number): string | null => {
  const start = units[place] as number
  return start === NULL ? null : text.slice(start, units[place + 1])
}

const addFields = compileFields<[user: User, add: (unit: number, string: string | null) => void], unknown>(
  'user, add',
  ({ field }, index) => `${field}: add(${UNIT.fields + 2 * index}, kinds.${field}.toColumn(user.${field}))`,
)

/** @param start of the record, in units. */
const readFields = compileFields<
  [read: typeof stringAt, text: string, units: Uint16Array, start: number],
  FieldValues
>(
  'read, text, units, start',
  ({ field }, index) =>
    `${field}: kinds.${field}.fromColumn(read(text, units, start + ${UNIT.fields + 2 * index}))`,
)

export interface RecordState {
  /** The counter of the user's changes. */
  readonly userSlot: number
  readonly userChanges: number
  readonly usedAt: number
}

/** A record in the log. It must not be used after another one was appended. */
export class TokenRecord {
  readonly #log: RecordLog
  readonly #segment: Segment
  readonly #start: number
  readonly #numbers: number
  readonly #units: number
  #decodedToken: string | null = null
  #decodedText: string | null = null
  #decodedUserId: string | null = null
  readonly position: number

  constructor(log: RecordLog, position: number) {
    this.position = position
    this.#log = log
    this.#segment = log.segmentOf(position)
    this.#start = log.offsetOf(position)
    this.#numbers = this.#start / 8
    this.#units = this.#start / 2
  }

  /** @returns the position of the new record; 0 if it is too large, or the token has characters that no token has. */
  static append(log: RecordLog, principal: Principal, state: RecordState): number {
    const { token, cachedUser, scopes } = principal
    const { user } = cachedUser
    const accountText = cachedUser.accountText ?? accountTextOf(user)
    let text = accountText
    const strings: [number, number, number][] = []
    // What the text contains already is not stored twice: most strings are in the text of the account.
    const add = (unit: number, string: string | null): void => {
      if (string === null) return void strings.push([unit, NULL, NULL])
      let start = text.indexOf(string)
      if (start === -1) {
        start = text.length
        text += string
      }
      strings.push([unit, start, start + string.length])
    }
    add(UNIT.id, user.id)
    add(UNIT.email, user.email)
    addFields(user, add)
    add(UNIT.credentialId, principal.credentialId)
    add(UNIT.scopes, scopes === null ? null : JSON.stringify(scopes))
    add(UNIT.impersonatedBy, principal.impersonatedBy)
    add(UNIT.factors, listText(user.factors))
    add(UNIT.amr, listText(principal.amr))
    add(UNIT.clientId, principal.client?.id ?? null)
    const width = WIDE.test(text) ? 2 : 1
    const size = HEADER + token.length + text.length * width
    if (size > MAX_RECORD || WIDE.test(token)) return 0

    const position = log.append(size)
    const { bytes, numbers, units } = log.segmentOf(position)
    const start = log.offsetOf(position)
    numbers.set(
      [
        ...[state.userSlot, state.userChanges, state.usedAt],
        ...[cachedUser.key, cachedUser.lastRequestAt],
        ...[principal.lastRequestAt, principal.storedRequestAt],
        ...[principal.authenticatedAt, principal.expiresAt],
        ...[user.createdAt, user.updatedAt, user.version],
      ],
      start / 8,
    )
    const unit = start / 2
    units[unit + UNIT.tokenLength] = token.length
    units[unit + UNIT.textLength] = text.length
    units[unit + UNIT.width] = width
    units[unit + UNIT.emailVerified] = Number(user.emailVerified)
    units[unit + UNIT.hasPassword] = Number(user.hasPassword)
    units[unit + UNIT.isHot] = 0
    units[unit + UNIT.accountLength] = accountText.length
    for (const [place, from, to] of strings) {
      units[unit + place] = from
      units[unit + place + 1] = to
    }
    bytes.write(token, start + HEADER, 'latin1')
    bytes.write(text, start + HEADER + token.length, width === 1 ? 'latin1' : 'utf16le')
    return position
  }

  get userSlot(): number {
    return this.#number(NUMBER.userSlot)
  }

  get userChanges(): number {
    return this.#number(NUMBER.userChanges)
  }

  get usedAt(): number {
    return this.#number(NUMBER.usedAt)
  }

  get userKey(): number {
    return this.#number(NUMBER.userKey)
  }

  get userVersion(): number {
    return this.#number(NUMBER.version)
  }

  get token(): string {
    const start = this.#start + HEADER
    const end = start + this.#unit(UNIT.tokenLength)
    this.#decodedToken ??= this.#segment.bytes.toString('latin1', start, end)
    return this.#decodedToken
  }

  get userId(): string {
    this.#decodedUserId ??= this.#copiedString(UNIT.id)
    return this.#decodedUserId
  }

  /** `null` unless it is a token of a grant. */
  get clientId(): string | null {
    return this.#string(UNIT.clientId)
  }

  get accountText(): string {
    return this.#text.slice(0, this.#unit(UNIT.accountLength))
  }

  get isHot(): boolean {
    return this.#unit(UNIT.isHot) === 1
  }

  set isHot(isHot: boolean) {
    if (isHot === this.isHot) return
    this.#segment.units[this.#units + UNIT.isHot] = Number(isHot)
    this.#log.countHot(this.position, isHot ? 1 : -1)
  }

  /** The user, with the newest last request that was known when the record was written or used. */
  user(): User {
    const lastRequestAt = this.#number(NUMBER.userRequestAt)
    return {
      ...readFields(stringAt, this.#text, this.#segment.units, this.#units),
      id: this.userId,
      email: this.#string(UNIT.email) as string,
      emailVerified: this.#unit(UNIT.emailVerified) === 1,
      hasPassword: this.#unit(UNIT.hasPassword) === 1,
      // Tokens of disabled users are not cached.
      disabled: false,
      factors: fromJson<readonly Factor[]>(this.#string(UNIT.factors), NO_FACTORS),
      createdAt: this.#number(NUMBER.createdAt),
      updatedAt: this.#number(NUMBER.updatedAt),
      lastRequestAt: lastRequestAt === NEVER ? null : lastRequestAt,
      version: this.userVersion,
    }
  }

  /**
   * @param client that of {@link clientId}.
   * @param queriedAt when the store was queried, in milliseconds of `performance.now()`.
   */
  principal(cachedUser: CachedUser, client: CachedClient | null, queriedAt: number): Principal {
    return {
      token: this.token,
      cachedUser,
      credentialId: this.#copiedString(UNIT.credentialId),
      client,
      scopes: fromJson<readonly string[] | null>(this.#string(UNIT.scopes), null),
      amr: fromJson(this.#string(UNIT.amr), NO_AMR),
      impersonatedBy: this.#string(UNIT.impersonatedBy),
      authenticatedAt: this.#number(NUMBER.authenticatedAt),
      expiresAt: this.#number(NUMBER.expiresAt),
      lastRequestAt: this.#number(NUMBER.lastRequestAt),
      storedRequestAt: this.#number(NUMBER.storedRequestAt),
      queriedAt,
      used: false,
    }
  }

  setLastRequest({ lastRequestAt, storedRequestAt, cachedUser }: Principal, usedAt: number): void {
    const { numbers } = this.#segment
    numbers[this.#numbers + NUMBER.lastRequestAt] = lastRequestAt
    numbers[this.#numbers + NUMBER.storedRequestAt] = storedRequestAt
    numbers[this.#numbers + NUMBER.userRequestAt] = cachedUser.lastRequestAt
    numbers[this.#numbers + NUMBER.usedAt] = usedAt
  }

  get #text(): string {
    const start = this.#start + HEADER + this.#unit(UNIT.tokenLength)
    const width = this.#unit(UNIT.width)
    const end = start + this.#unit(UNIT.textLength) * width
    this.#decodedText ??= this.#segment.bytes.toString(width === 1 ? 'latin1' : 'utf16le', start, end)
    return this.#decodedText
  }

  #string(unit: number): string | null {
    return stringAt(this.#text, this.#segment.units, this.#units + unit)
  }

  /** A slice would keep the whole text. */
  #copiedString(unit: number): string {
    if (this.#unit(UNIT.width) === 2) return copyString(this.#string(unit) as string)
    const start = this.#start + HEADER + this.#unit(UNIT.tokenLength)
    return this.#segment.bytes.toString('latin1', start + this.#unit(unit), start + this.#unit(unit + 1))
  }

  #number(place: number): number {
    return this.#segment.numbers[this.#numbers + place] as number
  }

  #unit(place: number): number {
    return this.#segment.units[this.#units + place] as number
  }
}
