/** What the package exports as `gatehouse/feature`: the declaration, and what a service takes from a list of features. */
export * from './assembly.ts'
export * from './declaration.ts'
