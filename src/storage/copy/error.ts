/** What the operator can mend, in a sentence: none of it is a fault of the code. */
export class CopyError extends Error {}
