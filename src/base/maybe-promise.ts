/** An embedded engine returns reads synchronously, which saves hot paths a promise. */
export type MaybePromise<T> = T | Promise<T>
