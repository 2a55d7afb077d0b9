/** Device authorization, as a device and a browser go through it. */
import type { FastifyInstance, LightMyRequestResponse } from 'fastify'
import { cookie } from './build.ts'
import { basic, postForm, type RegisteredClient, registerClient, requestToken } from './oauth.ts'

export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

/** Metadata of a command-line tool. */
export const TOOL = {
  name: 'Tool',
  authMethod: 'none',
  grantTypes: [DEVICE_CODE, 'refresh_token'],
  scopes: ['account:read', 'offline_access'],
}

type Parameters = Readonly<Record<string, string>>

/** As the client authenticates: with its secret, if it has one. */
const authenticated = (
  client: RegisteredClient,
  parameters: Parameters,
): [Parameters, Record<string, string>] =>
  client.secret === null ? [{ client_id: client.id, ...parameters }, {}] : [parameters, basic(client)]

export const requestDevice = (
  app: FastifyInstance,
  client: RegisteredClient,
  parameters: Parameters = {},
): Promise<LightMyRequestResponse> => postForm(app, 'device', ...authenticated(client, parameters))

export interface Device {
  readonly client: RegisteredClient
  readonly deviceCode: string
  readonly userCode: string
}

/** A device that waits. @throws {Error} if it is refused. */
export const newDevice = async (
  app: FastifyInstance,
  { client, ...parameters }: { readonly client?: RegisteredClient; readonly scope?: string } = {},
): Promise<Device> => {
  const own = client ?? (await registerClient(app, TOOL))
  const response = await requestDevice(app, own, parameters)
  if (response.statusCode !== 200) throw new Error(`${response.statusCode}: ${response.body}`)
  const { device_code: deviceCode, user_code: userCode } = response.json()
  return { client: own, deviceCode, userCode }
}

export const poll = (
  app: FastifyInstance,
  { client, deviceCode }: Pick<Device, 'client' | 'deviceCode'>,
): Promise<LightMyRequestResponse> =>
  requestToken(app, ...authenticated(client, { grant_type: DEVICE_CODE, device_code: deviceCode }))

const submit = (app: FastifyInstance, url: string, token: string, values: Parameters, ip?: string) =>
  app.inject({
    ...{ method: 'POST', url, payload: new URLSearchParams(values).toString() },
    headers: { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded', ...cookie(token) },
    ...(ip !== undefined && { remoteAddress: ip }),
  })

/** Enters a code on the page. */
export const enterCode = (
  app: FastifyInstance,
  userCode: string,
  token: string,
  ip?: string,
): Promise<LightMyRequestResponse> => submit(app, '/device', token, { user_code: userCode }, ip)

/** What names the request on the page of a code. */
export const deviceIn = ({ body }: LightMyRequestResponse): string =>
  /name="request" value="([^"]+)"/.exec(body)?.[1] ?? ''

export const decideDevice = (
  app: FastifyInstance,
  request: string,
  decision: 'approve' | 'deny',
  token: string,
): Promise<LightMyRequestResponse> => submit(app, '/device/decision', token, { request, decision })

/** A signed-in user enters the code, and decides. */
export const connectDevice = async (
  app: FastifyInstance,
  { userCode }: Pick<Device, 'userCode'>,
  token: string,
  decision: 'approve' | 'deny' = 'approve',
): Promise<LightMyRequestResponse> =>
  decideDevice(app, deviceIn(await enterCode(app, userCode, token)), decision, token)
