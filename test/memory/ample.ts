/** Memory for tests of other things: more than they can use. */
import type { HeldMemory } from '../../src/http/message.ts';
import { MemoryBudget, type MemoryLease } from '../../src/memory/budget.ts';

const ampleBytes = 1024 * 1024 * 1024;

export function ampleLease(): MemoryLease {
  const budget = new MemoryBudget({ bytesMax: ampleBytes, sharePercent: 100 });
  return budget.lease('websockets', { name: 'test', isReserved: false });
}

export const ampleMemory: HeldMemory = {
  whenRoom: (_octets, go) => go(),
  set: () => undefined,
  share: () => undefined,
};
