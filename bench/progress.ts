/** Says on standard error what the bench does: standard output has the results, which may be JSON. */
export const progress = (text: string): void => void process.stderr.write(`${text}\n`)
