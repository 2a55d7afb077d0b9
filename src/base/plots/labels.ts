/** Finds places for labels beside curves, so that nothing overlaps whatever was measured. */
export interface Point {
  readonly x: number
  readonly y: number
}

export interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** Pixels between points of a line that a label must not cover. */
const SPACING = 3

/** The points of a line through these points. */
export const along = (line: readonly Point[]): readonly Point[] =>
  line.flatMap((to, index) => {
    const from = line[index - 1] ?? to
    const parts = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / SPACING))
    return Array.from({ length: parts }, (_, part) => {
      const share = (part + 1) / parts
      return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
    })
  })

/** The points of a box, so that labels keep clear of each other. */
const within = ({ left, top, right, bottom }: Box): readonly Point[] =>
  [top, (top + bottom) / 2, bottom].flatMap(y =>
    along([
      { x: left, y },
      { x: right, y },
    ]),
  )

const GAP = 9

/** Boxes of a size beside a point: right, left, above, below, and the corners. */
const boxesAt = ({ x, y }: Point, width: number, height: number): readonly Box[] =>
  [
    [GAP, -height / 2],
    [-GAP - width, -height / 2],
    [-width, -GAP - height],
    [-width / 2, -GAP - height],
    [0, -GAP - height],
    [-width, GAP],
    [-width / 2, GAP],
    [0, GAP],
  ].map(([dx = 0, dy = 0]) => ({
    left: x + dx,
    top: y + dy,
    right: x + dx + width,
    bottom: y + dy + height,
  }))

/** Pixels between a label and a point: markers are larger than a line. */
const MARGIN = 5

const contains = ({ left, top, right, bottom }: Box, { x, y }: Point): boolean =>
  x > left - MARGIN && x < right + MARGIN && y > top - MARGIN && y < bottom + MARGIN

const isInside = (inner: Box, outer: Box): boolean =>
  inner.left >= outer.left &&
  inner.right <= outer.right &&
  inner.top >= outer.top &&
  inner.bottom <= outer.bottom

export class Labels {
  readonly #area: Box
  readonly #obstacles: Point[]

  /** @param obstacles points that no label may cover. */
  constructor(area: Box, obstacles: readonly Point[]) {
    this.#area = area
    this.#obstacles = [...obstacles]
  }

  /**
   * Finds the place for a text beside the last of these points where there is one, or where it covers least.
   * @returns where the text begins, on its baseline.
   */
  place(anchors: readonly Point[], width: number, height: number): Point {
    const boxes = anchors
      .toReversed()
      .flatMap(anchor => boxesAt(anchor, width, height))
      .filter(box => isInside(box, this.#area))
    const covered = (box: Box): number => this.#obstacles.filter(point => contains(box, point)).length
    const box = boxes.reduce((best, next) => (covered(next) < covered(best) ? next : best))
    this.#obstacles.push(...within(box))
    return { x: box.left, y: box.bottom - height * 0.25 }
  }
}
