/** The memory of the whole program: the budget of what is under way and its size, and the queues for work that takes memory. */

import { totalmem } from 'node:os';
import process from 'node:process';
import { getHeapStatistics } from 'node:v8';
import { MemoryBudget, type MemoryRefusal, type MemoryUse, memoryUses, type Turns } from './budget.ts';

type MemorySize = {
  /** Octets; 0: as much as suits the machine. */
  readonly memoryBytesMax: number;
  /** What one party may use of it. */
  readonly memorySharePercentMax: number;
};

export type ProgramMemory = {
  /** For requests, streams and WebSockets. */
  readonly budget: MemoryBudget;
  /** For content that is being processed. */
  readonly work: OctetLine;
  /** For what requests make out of less than it is (work-rules.ts). */
  readonly made: OctetLine;
  /** For the deliveries of writes that are being committed. A request that waits for it may hold room in `made`, so the two are apart. */
  readonly fanOuts: OctetLine;
  /** For pages that come from another process, any number of which could be under way. */
  readonly pages: OctetLine;
  /** Separate from the budget, so that slow receivers take no memory from requests. */
  readonly deliveries: MemoryBudget;
  readonly octetsByUse: () => readonly (readonly [MemoryUse, number])[];
  readonly gauges: readonly (readonly [name: string, help: string, value: () => number])[];
};

/** Size of the budget in octets. */
export function memoryBytesOf({ memoryBytesMax }: Pick<MemorySize, 'memoryBytesMax'>): number {
  return memoryBytesMax || defaultMemoryBytes(readMachineMemory());
}

export function createMemory(
  size: MemorySize,
  turns: Turns,
  onRefused: (refusal: MemoryRefusal) => void,
): ProgramMemory {
  const sharePercent = size.memorySharePercentMax;
  const bytesMax = memoryBytesOf(size);
  const budget = new MemoryBudget({ bytesMax, sharePercent, onRefused, turns });
  const deliveries = new MemoryBudget({
    bytesMax: Math.floor(bytesMax / deliveriesPart),
    sharePercent,
    turns,
  });
  const work = new OctetLine(Math.floor(bytesMax / workedOnPart));
  const madeMax = Math.floor(bytesMax / madePart);
  const made = new OctetLine(madeMax, madeWaiting * madeMax);
  const fanOuts = new OctetLine(madeMax);
  const pages = new OctetLine(Math.floor(bytesMax / pagesPart));
  return {
    ...{ budget, work, made, fanOuts, pages, deliveries },
    octetsByUse: () => memoryUses.map((use) => [use, budget.bytes(use) + deliveries.bytes(use)]),
    gauges: [
      ['comity_memory_bytes_max', 'Size of the memory budget.', () => budget.bytesMax],
      ['comity_work_bytes', 'Octets of content that is being processed.', () => work.bytes],
      ['comity_made_bytes', 'Octets of rows and events that requests are making.', () => made.bytes],
      ['comity_made_waiting', 'Requests that wait to make many rows.', () => made.waiting],
      ['comity_work_waiting', 'Requests whose content waits to be processed.', () => work.waiting],
    ],
  };
}

// The default size of the memory budget, and the parts of it for content, deliveries and pages.
//
// The budget is a fourth of the memory that the process may use (of its control group, otherwise of the machine), and
// at most half of V8's heap limit, because texts read from the store are on the heap. A container of 512 MiB, where V8
// limits the heap to 268 MiB, gets 128 MiB. The rest covers 110 to 130 MiB of an idle process with its threads, 16 MiB
// of finished pages, three page caches of 16 MiB, content being processed (half of the budget), and garbage.
//

type MachineMemory = {
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
const deliveriesPart = 8;

/** Divisor for rows, events, words and answers that requests make out of less (work-rules.ts), and how many times as much may wait. */
export const madePart = 4;
const madeWaiting = 32;

/** Divisor for pages on their way from a database. */
const pagesPart = 4;

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

// A queue that bounds the octets of work under way, in order of arrival. It always admits one piece, however large.

type Waiting = { readonly bytes: number; readonly go: () => void };

export class OctetLine {
  readonly #bytesMax: number;
  readonly #waitingBytesMax: number;
  readonly #waiting: Waiting[] = [];
  #bytes = 0;
  #waitingBytes = 0;

  /** @param waitingBytesMax of work that waits, at which `isFull` becomes true */
  constructor(bytesMax: number, waitingBytesMax: number = Number.POSITIVE_INFINITY) {
    this.#bytesMax = bytesMax;
    this.#waitingBytesMax = waitingBytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get isFull(): boolean {
    return this.#waitingBytes >= this.#waitingBytesMax;
  }

  /** Admits the work: immediately (undefined), or by a promise. Call `leave` with the same number at the end. */
  enter(bytes: number): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#bytes += bytes;
      return undefined;
    }
    this.#waitingBytes += bytes;
    return new Promise((resolve) => this.#waiting.push({ bytes, go: resolve }));
  }

  /** Does the work once it is admitted. */
  async run<T>(bytes: number, work: () => T | Promise<T>): Promise<T> {
    await this.enter(bytes);
    try {
      return await work();
    } finally {
      this.leave(bytes);
    }
  }

  leave(bytes: number): void {
    this.#bytes -= bytes;
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#waitingBytes -= next.bytes;
      this.#bytes += next.bytes;
      next.go();
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }
}
