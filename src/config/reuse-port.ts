/** Whether the kernel balances connections over several sockets at one port (`SO_REUSEPORT`). */
export const HAS_REUSE_PORT = ['linux', 'freebsd'].includes(process.platform)
