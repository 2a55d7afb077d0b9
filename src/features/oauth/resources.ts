/** Resources: what administrators do with them, and how requests name them. */
import type { IdCache } from '#core/auth/feature-caches'
import { type Actor, newId, ServiceError } from '#feature/declaration'
import { ERRORS, type OAuthDeps } from './definitions.ts'
import { RESOURCES_ID, type Resource, type ResourceOptions } from './resource.ts'

/** Characters: the longest token must be verified. */
export const MAX_IDENTIFIER = 256

/** RFC 8707 §2. */
const isIdentifier = (text: string): boolean =>
  URL.canParse(text) && !text.includes('#') && !/[\s\p{Cc}]|\P{ASCII}/u.test(text)

export class Resources {
  readonly #deps: OAuthDeps
  readonly #cache: IdCache<readonly Resource[]>

  constructor(deps: OAuthDeps) {
    this.#deps = deps
    this.#cache = deps.openCache({ load: () => deps.store.listResources(), max: 1 })
  }

  /** What `resource` of a request names. @returns `null` for the service itself; `undefined` if no resource has the identifier. */
  async named(identifier: string): Promise<Resource | null | undefined> {
    return this.#isService(identifier) ? null : this.find(identifier)
  }

  /** @returns `undefined` if no resource has the identifier. */
  async find(identifier: string): Promise<Resource | undefined> {
    return (await this.list()).find(each => each.identifier === identifier)
  }

  /** In the order of their creation. */
  async list(): Promise<readonly Resource[]> {
    return this.#cache.get(RESOURCES_ID)
  }

  /** The scopes of all resources. */
  async scopes(): Promise<readonly string[]> {
    return (await this.list()).flatMap(({ scopes }) => Object.keys(scopes))
  }

  /** @throws {ServiceError} `resourceNotFound` */
  async get(id: string): Promise<Resource> {
    const found = (await this.#deps.store.listResources()).find(each => each.id === id)
    if (found === undefined) throw new ServiceError(ERRORS.resourceNotFound)
    return found
  }

  /** @throws {ServiceError} `identifierInvalid`, `identifierOfService`, `identifierTaken`, `tooManyResources` */
  async create(options: ResourceOptions, actor: Actor): Promise<Resource> {
    const { store, newEvent, clock } = this.#deps
    this.#assertIdentifier(options)
    const id = newId(clock())
    const event = newEvent('resource.created', actor, null, { resource: id })
    const outcome = await store.addResource(id, options, event)
    if (outcome !== 'added') throw new ServiceError(ERRORS[outcome])
    return this.get(id)
  }

  /**
   * Changes what is given.
   * @throws {ServiceError} `resourceNotFound`, `identifierInvalid`, `identifierOfService`, `identifierTaken`, `resourceChanged`
   */
  async change(id: string, changes: Partial<ResourceOptions>, actor: Actor): Promise<Resource> {
    const { store, newEvent } = this.#deps
    const { updatedAt, ...former } = await this.get(id)
    const { identifier, name, scopes, clientIds } = { ...former, ...changes }
    const changed = { identifier, name, scopes, clientIds }
    this.#assertIdentifier(changed)
    const event = newEvent('resource.changed', actor, null, { resource: id })
    const outcome = await store.changeResource(id, updatedAt, changed, event)
    if (outcome !== 'changed') throw new ServiceError(ERRORS[outcome])
    return this.get(id)
  }

  /** @throws {ServiceError} `resourceNotFound` */
  async remove(id: string, actor: Actor): Promise<void> {
    const { store, newEvent } = this.#deps
    if (!(await store.removeResource(id, newEvent('resource.deleted', actor, null, { resource: id }))))
      throw new ServiceError(ERRORS.resourceNotFound)
  }

  /** Parsers of URLs add a slash to an origin. */
  #isService(identifier: string): boolean {
    const { publicUrl } = this.#deps.config
    return identifier === publicUrl || identifier === `${publicUrl}/`
  }

  #assertIdentifier({ identifier }: ResourceOptions): void {
    if (!isIdentifier(identifier)) throw new ServiceError(ERRORS.identifierInvalid)
    if (this.#isService(identifier) || this.#deps.clientTokens()?.isAccepted(identifier))
      throw new ServiceError(ERRORS.identifierOfService)
  }
}
