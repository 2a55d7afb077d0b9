/** The code blocks of a page that change the project, and their application to a copy of it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface Block {
  /** The page and the line of the block, for error messages. */
  readonly source: string
  /** The heading of the page's section, without `## `. */
  readonly section: string
  /** The file that the block creates, replaces or changes. */
  readonly path: string
  /** A whole file, or hunks. */
  readonly kind: 'file' | 'diff'
  readonly text: string
}

const FENCE = /^```(ts|diff)\n(.*)\n([\s\S]*?)^```$/gm

/**
 * Two kinds of blocks count: `ts`, a whole file whose first line is `// path`, and `diff`, whose first line is `--- path`. Blocks
 * of another language, or with another word behind the language (`ts illustration`), do not.
 * @throws {Error} for a block of these two that names no file.
 */
export const blocksOf = (page: string, text: string): Block[] =>
  [...text.matchAll(FENCE)].map(({ 0: block, 1: language, 2: first = '', 3: rest = '', index }) => {
    const before = text.slice(0, index)
    const source = `${page}:${before.split('\n').length}`
    const [section = ''] = before.split(/^## /m).at(-1)?.split('\n') ?? []
    const kind = language === 'diff' ? 'diff' : 'file'
    const path = (kind === 'diff' ? /^--- (\S+)$/ : /^\/\/ (\S+)$/).exec(first)?.[1]
    if (path === undefined) throw new Error(`${source}: the block names no file:\n${block}`)
    return { source, section, path, kind, text: kind === 'diff' ? rest : `${first}\n${rest}` }
  })

/** A quotation of a file: a block whose fence names the language and the file, as `ts examples/notes/notes.ts`. */
export interface Excerpt {
  readonly path: string
  /** The parts of the file, in its order. A line with `// …` separates them. */
  readonly parts: readonly string[]
}

const EXCERPT = /^```ts ([\w/.-]+\.ts)\n([\s\S]*?)^```$/gm

export const excerptsOf = (text: string): Excerpt[] =>
  [...text.matchAll(EXCERPT)].map(([, path = '', quoted = '']) => ({
    path,
    parts: quoted.split(/^ *\/\/ …\n/m),
  }))

const sideOf = (lines: readonly string[], sign: '+' | '-'): string[] =>
  lines.filter(line => line === '' || line[0] === ' ' || line[0] === sign).map(line => line.slice(1))

/** The indexes at which `part` is a run of `lines`. */
const occurrences = (lines: readonly string[], part: readonly string[]): number[] =>
  lines.flatMap((_, index) => (part.every((line, offset) => lines[index + offset] === line) ? [index] : []))

/** @returns why a hunk does not apply, or `null`. */
const problemOf = (changes: string[], from: string[], found: number[], end: number): string | null => {
  const [start = -1, ...others] = found
  if (changes.some(line => !/^(?:[ +-]|$)/.test(line))) return 'has a line without a sign'
  if (from.length === 0) return 'has no line of the file'
  if (start === -1) return 'is not found'
  if (others.length > 0) return 'is found several times'
  return start < end ? 'is not below the hunk before it' : null
}

/** @throws {Error} unless the old lines of each hunk occur exactly once in the text, below those of the hunk before. */
const applyDiff = (text: string, { source, path, text: diff }: Block): string => {
  let lines = text.split('\n')
  let end = 0
  for (const hunk of diff.split(/^@@\n/m)) {
    const changes = hunk.replace(/\n$/, '').split('\n')
    const [from, to] = [sideOf(changes, '-'), sideOf(changes, '+')]
    const found = occurrences(lines, from)
    const problem = problemOf(changes, from, found, end)
    if (problem !== null) throw new Error(`${source}: ${path}: this hunk ${problem}:\n${hunk}`)
    const [start = 0] = found
    lines = lines.toSpliced(start, from.length, ...to)
    end = start + to.length
  }
  return lines.join('\n')
}

/** Applies the blocks in order to the project in `folder`. @throws {Error} that names the first block that does not apply. */
export const applyBlocks = (folder: string, blocks: readonly Block[]): void => {
  for (const block of blocks) {
    const file = join(folder, block.path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, block.kind === 'file' ? block.text : applyDiff(readFileSync(file, 'utf8'), block))
  }
}
