import { serializeAdminUser } from '../users/serializers.ts'
import type { User } from '../users/user.ts'
import { print, table } from './output.ts'

export const printUser = (json: boolean | undefined, user: User): void => {
  const presented = serializeAdminUser(user)
  const rows = Object.entries(presented).map(([name, value]) => [name, String(value ?? '-')])
  print(json, presented, table(rows))
}
