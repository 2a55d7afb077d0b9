import type { RouteOptions } from 'fastify'

/** For messages: `GET /account`. */
export const routeName = ({ method, url }: Pick<RouteOptions, 'method' | 'url'>): string =>
  `${[method].flat().join(', ')} ${url}`
