/**
 * The first step of a sign-in, kept until the second: what a page carries instead of the password. It is a message authentication code under
 * the hash of the password, so that nothing is stored, every instance can check it, and another password ends it at once.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
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

const sealOf = (expiresAt: number, { email, passwordHash }: FirstStep, { userAgent }: Browser): Buffer =>
  createHmac('sha256', passwordHash)
    .update(JSON.stringify(['sign-in step', expiresAt, email, userAgent ?? '']))
    .digest()

/** @param now milliseconds since the epoch. */
export const newStep = (first: FirstStep, browser: Browser, now: number): string => {
  const expiresAt = now + LIFETIME
  return `${expiresAt}.${sealOf(expiresAt, first, browser).toString('base64url')}`
}

/** Whether a step has expired, or is none. It proves nothing. @param now milliseconds since the epoch. */
export const isOver = (step: string, now: number): boolean => {
  const expiresAt = Number(STEP.exec(step)?.[1] ?? 0)
  return expiresAt <= now || expiresAt > now + LIFETIME
}

/** Whether a step was issued to this browser, for this account with this password. */
export const isStepOf = (step: string, first: FirstStep, browser: Browser): boolean => {
  const [, expiresAt, seal] = STEP.exec(step) ?? []
  return (
    seal !== undefined &&
    timingSafeEqual(Buffer.from(seal, 'base64url'), sealOf(Number(expiresAt), first, browser))
  )
}
