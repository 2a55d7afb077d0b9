/** Errors of a listener whose address the operator has to change. */

/** An error of a listener. The message tells the operator what to do. */
export class ListenError extends Error {}

interface Address {
  readonly host: string
  readonly port: number
}

interface AddressSettings {
  readonly host: string
  readonly port: string
}

type Advice = (address: Address, settings: AddressSettings) => string

const unknownAddress: Advice = ({ host }, settings) =>
  `${settings.host} ${host} is not an address of this machine. Set ${settings.host} to 127.0.0.1 (this machine only), 0.0.0.0 (every address), or one of its addresses`

const ADVICE: Readonly<Record<string, Advice>> = {
  EADDRINUSE: ({ host, port }, settings) =>
    `Port ${port} of ${host} is in use. Set ${settings.port} to another one, or end the process that uses it`,
  EACCES: ({ host, port }, settings) =>
    `Port ${port} of ${host} is forbidden to this process. Set ${settings.port} to another one (1024 or higher), or grant the process the right to use it`,
  EADDRNOTAVAIL: unknownAddress,
  ENOTFOUND: unknownAddress,
}

/** @returns a {@link ListenError} for the codes of {@link ADVICE}, any other error as it is. */
export const toListenError = (error: unknown, address: Address, settings: AddressSettings): unknown => {
  const advice = ADVICE[(error as NodeJS.ErrnoException).code ?? '']
  return advice === undefined ? error : new ListenError(advice(address, settings), { cause: error })
}
