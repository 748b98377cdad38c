/** Wires the memory budget: its size on this machine, its metrics and log lines, and the two queues for work that takes memory. */
import type { Settings } from './config/settings.ts';
import { MemoryBudget, memoryUses } from './memory/budget.ts';
import {
  defaultMemoryBytes,
  deliveriesPart,
  pagesPart,
  readMachineMemory,
  workedOnPart,
} from './memory/machine-memory.ts';
import { OctetLine } from './memory/octet-line.ts';
import type { Metrics } from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import type { ServerMemory } from './server/context.ts';

export type MemoryOptions = {
  readonly settings: Settings;
  readonly observe: Observe;
  readonly metrics: Metrics;
};

export type ComposedMemory = ServerMemory & {
  /** For pages that come from another process, any number of which could be under way. */
  readonly pages: OctetLine;
  /** Separate from the budget, so that slow receivers take no memory from requests. */
  readonly deliveries: MemoryBudget;
};

export function composeMemory({ settings, observe, metrics }: MemoryOptions): ComposedMemory {
  const bytesMax = settings.memoryBytesMax || defaultMemoryBytes(readMachineMemory());
  const budget = new MemoryBudget({
    bytesMax,
    sharePercent: settings.memorySharePercentMax,
    onRefused: (refusal) => observe({ kind: 'memory-refused', ...refusal }),
  });
  const deliveries = new MemoryBudget({
    bytesMax: Math.floor(bytesMax / deliveriesPart),
    sharePercent: settings.memorySharePercentMax,
  });
  const work = new OctetLine(Math.floor(bytesMax / workedOnPart));
  const pages = new OctetLine(Math.floor(bytesMax / pagesPart));
  const gauge = metrics.gauge;
  gauge('comity_memory_bytes_max', 'Size of the memory budget.', () => budget.bytesMax);
  metrics.gaugeBy('comity_memory_bytes', 'Used part of the memory budget, by use.', 'use', () =>
    memoryUses.map((use) => [use, budget.bytes(use) + deliveries.bytes(use)] as const),
  );
  gauge('comity_work_bytes', 'Octets of content that is being processed.', () => work.bytes);
  gauge('comity_work_waiting', 'Requests whose content waits to be processed.', () => work.waiting);
  return { budget, work, pages, deliveries };
}
