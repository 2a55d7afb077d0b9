/** The systems that users can be imported from, by the value of `--from`. */
import { auth0 } from './auth0.ts'
import { cognito } from './cognito.ts'
import { firebase } from './firebase.ts'
import { keycloak } from './keycloak.ts'
import type { Origin } from './origin.ts'
import { supabase } from './supabase.ts'
import { aspnet, clerk, devise, django, wordpress } from './tables.ts'

export const ORIGINS = {
  auth0,
  firebase,
  supabase,
  keycloak,
  cognito,
  clerk,
  django,
  wordpress,
  devise,
  aspnet,
} as const satisfies Readonly<Record<string, Origin>>

export type OriginName = keyof typeof ORIGINS
