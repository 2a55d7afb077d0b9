/**
 * The first step of a sign-in, kept until the second: what a page carries instead of the password. It is a message authentication code of the
 * hash of the password, so that nothing is stored, every instance can check it, and another password ends it at once. It needs the signing key
 * too: the hashes alone, of a backup or an export, must not sign anybody in.
 */
import { timingSafeEqual } from 'node:crypto'
import type { Seal } from '../auth/access-tokens.ts'
import type { SessionClient } from '../auth/session.ts'

/** Milliseconds. */
const LIFETIME = 300_000

const STEP = /^(\d{13})\.([\w-]{43})$/

export interface FirstStep {
  /** In canonical form. */
  readonly email: string
  readonly passwordHash: string
}

type Browser = Pick<SessionClient, 'userAgent'>

const sealOf = (
  seal: Seal,
  expiresAt: number,
  { email, passwordHash }: FirstStep,
  { userAgent }: Browser,
): Buffer => seal(JSON.stringify(['sign-in step', expiresAt, email, userAgent ?? '', passwordHash]))

/** @param now milliseconds since the epoch. */
export const newStep = (seal: Seal, first: FirstStep, browser: Browser, now: number): string => {
  const expiresAt = now + LIFETIME
  return `${expiresAt}.${sealOf(seal, expiresAt, first, browser).toString('base64url')}`
}

/** Whether a step has expired, or is none. It proves nothing. @param now milliseconds since the epoch. */
export const isOver = (step: string, now: number): boolean => {
  const expiresAt = Number(STEP.exec(step)?.[1] ?? 0)
  return expiresAt <= now || expiresAt > now + LIFETIME
}

/** Whether a step was issued to this browser, for this account with this password. */
export const isStepOf = (seal: Seal, step: string, first: FirstStep, browser: Browser): boolean => {
  const [, expiresAt, given] = STEP.exec(step) ?? []
  return (
    given !== undefined &&
    timingSafeEqual(Buffer.from(given, 'base64url'), sealOf(seal, Number(expiresAt), first, browser))
  )
}
