/** A feature with one consumer of events, whose handler a test chooses. */
import type { Delivery, Feature, LoggedEvent } from '#feature/declaration'
import { defineFeature } from '#feature/declaration'

type Handle = (event: LoggedEvent, delivery: Delivery) => unknown

export const feature = defineFeature({ name: 'watching', module: import.meta.url })

/** @param types default: all. */
export const watching = (handle: Handle, types?: readonly string[]): Feature => ({
  ...feature,
  consumers: {
    watch: { ...(types !== undefined && { types }), handle: (_, event, delivery) => handle(event, delivery) },
  },
})
