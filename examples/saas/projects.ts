/** Projects of organizations, in memory. Webhooks of Gatehouse tell what happens to the organizations. */
import type { FastifyInstance } from 'fastify'
import { Webhook } from 'standardwebhooks'
import { OPERATOR } from '#feature/declaration'

const workspaces = new Map<string, { readonly projects: string[]; readonly activity: string[] }>()

export const workspaceOf = (organizationId: string) => {
  const workspace = workspaces.get(organizationId) ?? { projects: [], activity: [] }
  workspaces.set(organizationId, workspace)
  return workspace
}

const TYPES = ['organization.created', 'organization.member-added', 'organization.deleted']

/** Only its creation shows the secret, which the application does not store: each start makes a webhook. */
const createWebhook = async ({ gatehouse }: FastifyInstance, url: string): Promise<Webhook> => {
  const { webhooks } = gatehouse.services
  const former = (await webhooks.list()).filter(({ description }) => description === 'projects')
  for (const { id } of former) await webhooks.remove(id, OPERATOR)
  const { secret } = await webhooks.create({ url, types: TYPES, description: 'projects' }, OPERATOR)
  return new Webhook(secret)
}

export const receiveWebhooks = async (app: FastifyInstance, { url }: { readonly url: string }) => {
  const webhook = await createWebhook(app, url)
  const handled = new Set<unknown>()
  // The exact text is signed.
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    done(null, body)
  })
  app.post<{ Body: string }>('/webhooks', async ({ headers, body }, reply) => {
    try {
      webhook.verify(body, headers as Record<string, string>)
    } catch {
      return reply.code(401).send()
    }
    const { type, timestamp, data } = JSON.parse(body)
    const { organization } = data.details
    // An event may come again.
    if (handled.has(data.id)) return reply.code(204).send()
    handled.add(data.id)
    if (type === 'organization.deleted') workspaces.delete(organization)
    else workspaceOf(organization).activity.push(`${timestamp} ${type}`)
    return reply.code(204).send()
  })
}
