/** Signals that terminals and service managers send to stop the service, often to the whole process group. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const
