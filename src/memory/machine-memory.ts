/**
 * The default size of the memory budget, and the parts of it for content, deliveries and pages.
 *
 * The budget is a fourth of the memory that the process may use (of its control group, otherwise of the machine), and
 * at most half of V8's heap limit, because texts read from the store are on the heap. A container of 512 MiB, where V8
 * limits the heap to 268 MiB, gets 128 MiB. The rest covers 110 to 130 MiB of an idle process with its threads, 16 MiB
 * of finished pages, three page caches of 16 MiB, content being processed (half of the budget), and garbage.
 */
import { totalmem } from 'node:os';
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';

export type MachineMemory = {
  /** Limit of the process's control group; greater than `total` without one. */
  readonly constrained: number;
  readonly total: number;
  /** V8's heap limit. */
  readonly heap: number;
};

const MiB = 1024 * 1024;

/** A smaller budget would refuse ordinary requests. */
export const memoryBytesMin = 16 * MiB;

/** Divisor for content being processed: each octet takes about eight, as text, parsed value, document and event. */
export const workedOnPart = 16;

/** Divisor for events being sent to endpoints: each is held as text and as request body until the response. */
export const deliveriesPart = 8;

/** Divisor for rows, events, words and answers that requests make out of less (work-rules.ts), and how many times as much may wait. */
export const madePart = 4;
export const madeWaiting = 32;

/** Divisor for pages on their way from a database. */
export const pagesPart = 4;

export function readMachineMemory(): MachineMemory {
  return {
    constrained: process.constrainedMemory(),
    total: totalmem(),
    heap: getHeapStatistics().heap_size_limit,
  };
}

export function defaultMemoryBytes(machine: MachineMemory): number {
  return Math.max(memoryBytesMin, Math.floor(Math.min(memoryOf(machine) / 4, machine.heap / 2)));
}

/**
 * Octets of a file worth mapping: an eighth of the memory. On systems that read ahead of a page fault by megabytes, a
 * mapped file larger than the memory evicts its own pages and those of the program before their use: ten lists of 480
 * MB each from a file of 1.4 GB in 512 MiB took more than 300 s with 8 MiB of read-ahead and 1 GiB mapped, and 26 s
 * with an eighth, as with nothing mapped.
 */
export function mappableBytes(machine: MachineMemory): number {
  return Math.floor(memoryOf(machine) / 8);
}

function memoryOf({ constrained, total }: MachineMemory): number {
  // 0 means that the system does not know.
  return constrained > 0 ? Math.min(constrained, total) : total;
}
