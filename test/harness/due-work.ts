/** The parts of due work in a test: all lanes, starts that are not counted, and the timers of the runtime. */
import type { Starts } from '../../src/work/starts.ts';
import { runtimeTimers } from '../../src/work/timers.ts';
import type { DueWork } from '../../src/work/work-engine.ts';

export const everyLane: DueWork['lanes'] = {
  owns: () => true,
  need: () => undefined,
  hold: () => undefined,
  release: () => undefined,
  onChange: () => () => undefined,
};

export const noStarts: Starts = {
  begin: async () => ({ isUsedUp: false, end: async () => undefined }),
  run: (_work, make) => make(false),
  close: async () => undefined,
};

export function dueWork(given: Partial<DueWork> = {}): DueWork {
  return { lanes: everyLane, starts: noStarts, timers: runtimeTimers, uniform: () => 0.5, ...given };
}
