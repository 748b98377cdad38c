/**
 * A reader of the event stream as a browser is one: whenever its connection ends it comes back with the id of the last
 * event it has, to whatever process it meets.
 */
import { type EventReader, readEvents, type StreamedEvent } from '../../wire/resources/event-reader.ts';
import type { Fleet } from './fleet.ts';

export type Tail = {
  /** All that came, in order, over every connection. */
  readonly events: readonly StreamedEvent[];
  readonly connections: number;
  /** Resolves when an event that fits has come; false when none did in time. */
  saw(fits: (event: StreamedEvent) => boolean): Promise<boolean>;
  stop(): Promise<void>;
};

/** It also leaves of itself, so that resuming is tried more often than processes die. */
const stayMsMin = 400;
const stayMsSpread = 2000;
const pauseMs = 50;
const patienceMs = 30_000;

export function startTail(fleet: Fleet, from: string): Tail {
  const events: StreamedEvent[] = [];
  let connections = 0;
  let stopped = false;
  let reader: EventReader | undefined;

  async function follow(): Promise<void> {
    let last = from;
    while (!stopped) {
      reader = await connect(fleet, last);
      if (reader === undefined) {
        await pause(pauseMs);
        continue;
      }
      connections += 1;
      const { events: come, ended } = reader;
      const leaving = setTimeout(reader.close, stayMsMin + Math.random() * stayMsSpread);
      await ended;
      clearTimeout(leaving);
      events.push(...come);
      last = events.at(-1)?.id ?? from;
    }
  }

  const following = follow();
  return {
    get events() {
      return events;
    },
    get connections() {
      return connections;
    },
    async saw(fits) {
      for (const deadline = Date.now() + patienceMs; Date.now() < deadline; ) {
        if (events.some(fits)) return true;
        await pause(pauseMs);
      }
      return false;
    },
    async stop() {
      stopped = true;
      reader?.close();
      await following;
    },
  };
}

async function connect(fleet: Fleet, lastEventId: string): Promise<EventReader | undefined> {
  if (fleet.running.length === 0) return undefined;
  try {
    const reader = await readEvents(fleet.pick().port, { lastEventId });
    if (reader.response.statusCode === 200) return reader;
    reader.close();
  } catch {
    // The process is gone: another will do.
  }
  return undefined;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
