/** Messages between the primary and a worker, which is a process or a thread of this process; those about metrics are in worker-metrics.ts. */
import cluster from 'node:cluster'
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import type { WorkerStore } from '#storage/sqlite/engine'

export interface Channel {
  /** @param onSent called when the message has left this event loop, or cannot: then the other end is gone. */
  send(message: unknown, onSent?: (sent: boolean) => void): void
  onMessage(listener: (message: unknown) => void): void
  readonly isOpen: boolean
}

export interface ChannelToPrimary extends Channel {
  /** Whether both ends are in one process. */
  readonly isThread: boolean
}

/** What a worker thread is started with. */
export interface ThreadData {
  readonly store: WorkerStore
  /** The port of the service; 0 if the system is to choose it. */
  readonly port: number
}

/** `null` except in a worker thread. */
export const threadData = (): ThreadData | null => (isMainThread ? null : (workerData as ThreadData))

const processChannel: ChannelToPrimary = {
  isThread: false,
  send(message, onSent) {
    // Without a primary the worker is about to stop. An error without a callback would end the process.
    if (process.connected) process.send?.(message, error => onSent?.(error === null))
    else onSent?.(false)
  },
  onMessage: listener => void process.on('message', listener),
  get isOpen() {
    return process.connected
  },
}

const threadChannel: ChannelToPrimary = {
  isThread: true,
  send(message, onSent) {
    parentPort?.postMessage(message)
    onSent?.(true)
  },
  onMessage: listener => void parentPort?.on('message', listener),
  isOpen: true,
}

/** The channel of a worker to the primary; `null` in another process. */
export const channelToPrimary = (): ChannelToPrimary | null => {
  if (!isMainThread) return threadChannel
  return cluster.isWorker ? processChannel : null
}

export const STOP = 'stop'

/** Sent by a worker once it listens on a port. */
export interface Listening {
  readonly listening: number
}

/** Sent by a worker that cannot start. */
export interface Failure {
  readonly failure: string
}

export interface LogLine {
  readonly line: string
}

const has = <Key extends string>(message: unknown, key: Key): message is Record<Key, unknown> =>
  typeof message === 'object' && message !== null && key in message

export const isListening = (message: unknown): message is Listening => has(message, 'listening')
export const isFailure = (message: unknown): message is Failure => has(message, 'failure')
export const isLogLine = (message: unknown): message is LogLine => has(message, 'line')
