/**
 * How large the memory budget is unless a setting says so, and how much of it content may take that is being worked on.
 *
 * The budget is a fourth of the memory that the process may have (that of its control group, else of the machine), and at most half of
 * the heap that V8 would fill, because texts read from the store are on it. In a container of 512 MiB, where V8 takes 268 MiB for its
 * heap, that is 128 MiB. The rest is for what is there anyway: 110 to 130 MiB of an idle process with its threads, 16 MiB of finished pages, three page
 * caches of 16 MiB, half of the budget for content that is worked on, and what the collector has not freed yet.
 */
import { totalmem } from 'node:os';
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';

export type MachineMemory = {
  /** What the control group of the process allows; greater than `total` where nothing does. */
  readonly constrained: number;
  readonly total: number;
  /** What V8 lets the heap grow to. */
  readonly heap: number;
};

const MiB = 1024 * 1024;

/** Less would refuse what any client may ask. */
export const memoryBytesMin = 16 * MiB;

/**
 * Content that is worked on at once, as a part of the budget: its octets, of which each takes about eight of memory as text, as
 * parsed value, as document and event, and on its way to the writer.
 */
export const workedOnPart = 16;

/**
 * Events that are being sent to endpoints, as a part of the budget: each is there as text and as the body that is made of it, for as long as a
 * receiver takes to answer.
 */
export const deliveriesPart = 8;

/** Pages that are on their way from a database, as a part of the budget. */
export const pagesPart = 4;

export function readMachineMemory(): MachineMemory {
  return {
    constrained: process.constrainedMemory(),
    total: totalmem(),
    heap: getHeapStatistics().heap_size_limit,
  };
}

export function defaultMemoryBytes({ constrained, total, heap }: MachineMemory): number {
  // 0 where the system does not know.
  const most = constrained > 0 ? Math.min(constrained, total) : total;
  return Math.max(memoryBytesMin, Math.floor(Math.min(most / 4, heap / 2)));
}
