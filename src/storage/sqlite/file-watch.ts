import { type OpenedFile, type Problem, pathProblem } from './database-file.ts'

/** Milliseconds between two looks at the file. */
const INTERVAL = 250

/**
 * Looks for the file from the event loop as well: the writer's thread may be waiting for another process's lock. What either
 * of them finds wrong counts until it finds nothing any more.
 */
export class FileWatch {
  readonly #file: OpenedFile
  readonly #onChange: (problem: Problem | null) => void
  readonly #timer: NodeJS.Timeout
  #own: Problem | null = null
  #writers: Problem | null = null
  #told: Problem | null = null

  /** @param onChange told when a problem begins and when there is none any more. */
  constructor(file: OpenedFile, onChange: (problem: Problem | null) => void) {
    this.#file = file
    this.#onChange = onChange
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref()
  }

  get problem(): Problem | null {
    return this.#own ?? this.#writers
  }

  /** What the writer's thread has found. */
  found(problem: Problem | null): void {
    // A later thread knows no more of what was there before.
    if (!this.#writers?.isFinal) this.#writers = problem
    this.#look()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    this.#own = pathProblem(this.#file)
    const { problem } = this
    if ((problem === null) !== (this.#told === null)) this.#onChange(problem)
    this.#told = problem
  }
}
