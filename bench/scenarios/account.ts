import type { Scenario } from '../scenario.ts'
import { addUsers } from '../users.ts'

const USERS = 10_000

export const account: Scenario = {
  name: 'account',
  title: 'GET /account, Bearer, 10,000 users in rotation',
  yardstick: 'account.ts',
  prepare: async workspace => ({
    requests: { path: '/account', tokens: await addUsers(workspace, USERS) },
  }),
}
