/** A log of records outside of the JavaScript heap, where garbage collection does not visit them (docs/design.md, "Hot path"). */

const MAX_SEGMENT = 2 ** 20
const MIN_SEGMENT = 2 ** 14

/** Segments of a log, within these sizes. */
const SEGMENTS = 8

/** Records begin at multiples of so many bytes, for 64-bit numbers. */
const ALIGNMENT = 8

/** Bytes of a record at most: two fit into the smallest segment. */
export const MAX_RECORD = MIN_SEGMENT / 2

/** A part of the log. The arrays are views of the same bytes. */
export interface Segment {
  readonly bytes: Buffer
  readonly numbers: Float64Array
  readonly units: Uint16Array
  records: number
  hot: number
}

const newSegment = (size: number): Segment => {
  const memory = new ArrayBuffer(size)
  const [numbers, units] = [new Float64Array(memory), new Uint16Array(memory)]
  return { bytes: Buffer.from(memory), numbers, units, records: 0, hot: 0 }
}

/**
 * A ring of segments: a full log overwrites its oldest one. Positions only increase, so that of an overwritten record is always recognised.
 * Memory is allocated as the log grows.
 */
export class RecordLog {
  readonly #segmentSize: number
  readonly #maxSegments: number
  /** By number, modulo their maximum. The first has the number 1; when its bytes are used again, they get a new number. */
  readonly #segments: Segment[] = []
  #newest = 0
  #oldest = 1
  #end: number
  #records = 0
  #hot = 0
  #overwritten = 0

  constructor(capacity: number) {
    const size = 2 ** Math.ceil(Math.log2(capacity / SEGMENTS))
    this.#segmentSize = this.#end = Math.min(MAX_SEGMENT, Math.max(MIN_SEGMENT, size))
    this.#maxSegments = Math.max(2, Math.ceil(capacity / this.#segmentSize))
  }

  get records(): number {
    return this.#records
  }

  get hot(): number {
    return this.#hot
  }

  /** Records that were overwritten, since the start, except of tokens in the first level. */
  get overwritten(): number {
    return this.#overwritten
  }

  /** Whether any record can be appended without overwriting another one. */
  get hasRoom(): boolean {
    return this.#newest - this.#oldest + 1 < this.#maxSegments || this.#end + MAX_RECORD <= this.#segmentSize
  }

  /** @param size bytes, at most {@link MAX_RECORD}. @returns the position of the new record. */
  append(size: number): number {
    const aligned = Math.ceil(size / ALIGNMENT) * ALIGNMENT
    if (this.#end + aligned > this.#segmentSize) this.#beginSegment()
    const position = this.#newest * this.#segmentSize + this.#end
    this.#end += aligned
    this.segmentOf(position).records += 1
    this.#records += 1
    return position
  }

  /** Whether the record at a position is not overwritten; false for 0. */
  has(position: number): boolean {
    return position >= this.#oldest * this.#segmentSize
  }

  segmentOf(position: number): Segment {
    return this.#segments[Math.floor(position / this.#segmentSize) % this.#maxSegments] as Segment
  }

  offsetOf(position: number): number {
    return position % this.#segmentSize
  }

  countHot(position: number, change: 1 | -1): void {
    this.segmentOf(position).hot += change
    this.#hot += change
  }

  /** The record must neither be overwritten nor removed before. */
  remove(position: number): void {
    this.segmentOf(position).records -= 1
    this.#records -= 1
  }

  removeOldest(): void {
    const { records, hot } = this.segmentOf(this.#oldest * this.#segmentSize)
    this.#records -= records
    this.#hot -= hot
    this.#overwritten += records - hot
    this.#oldest += 1
    if (this.#oldest > this.#newest) this.#end = this.#segmentSize
  }

  clear(): void {
    this.#records = this.#hot = 0
    this.#oldest = this.#newest + 1
    this.#end = this.#segmentSize
  }

  #beginSegment(): void {
    if (this.#newest - this.#oldest + 1 === this.#maxSegments) this.removeOldest()
    this.#newest += 1
    this.#end = 0
    const index = this.#newest % this.#maxSegments
    let segment = this.#segments[index]
    if (segment === undefined) {
      segment = newSegment(this.#segmentSize)
      this.#segments[index] = segment
    }
    segment.records = segment.hot = 0
  }
}
