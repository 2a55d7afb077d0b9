import { canonicalEmail, type User } from '../users/user.ts'
import type { Users } from '../users/users.ts'

/** How commands are told which user is meant. @throws {ServiceError} `userNotFound` */
export const findUser = (users: Users, idOrEmail: string): Promise<User> =>
  idOrEmail.includes('@')
    ? users.getByEmail(canonicalEmail(idOrEmail))
    : users.get(idOrEmail.trim().toLowerCase())
