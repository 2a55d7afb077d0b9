/** A count for each of a fixed set of names, so that their number is bounded and each begins with 0. */
export class Counters<Name extends string> {
  readonly #values: Record<Name, number>

  constructor(names: readonly Name[]) {
    this.#values = Object.fromEntries(names.map(name => [name, 0])) as Record<Name, number>
  }

  add(name: Name): void {
    this.#values[name] += 1
  }

  get values(): Readonly<Record<Name, number>> {
    return { ...this.#values }
  }
}
