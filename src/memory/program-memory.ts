/** The memory of the whole program: the budget of what is under way, and the queues for work that takes memory. */
import { MemoryBudget, type MemoryRefusal, type MemoryUse, memoryUses, type Turns } from './budget.ts';
import {
  defaultMemoryBytes,
  deliveriesPart,
  madePart,
  madeWaiting,
  pagesPart,
  readMachineMemory,
  workedOnPart,
} from './machine-memory.ts';
import { OctetLine } from './octet-line.ts';

export type MemoryOptions = {
  /** Octets; 0: as much as suits the machine. */
  readonly memoryBytesMax: number;
  /** What one party may use of it. */
  readonly memorySharePercentMax: number;
  readonly onRefused: (refusal: MemoryRefusal) => void;
  readonly turns: Turns;
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
export function memoryBytesOf({ memoryBytesMax }: Pick<MemoryOptions, 'memoryBytesMax'>): number {
  return memoryBytesMax || defaultMemoryBytes(readMachineMemory());
}

export function createMemory({
  memorySharePercentMax: sharePercent,
  onRefused,
  turns,
  ...size
}: MemoryOptions): ProgramMemory {
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
