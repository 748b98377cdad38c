/** The services of a program over the store of a test, with default settings unless others are given. */
import { randomBytes, randomInt } from 'node:crypto';
import { loadSettings } from '../../src/config/load-settings.ts';
import type { Settings } from '../../src/config/settings.ts';
import { createMemory } from '../../src/memory/program-memory.ts';
import { createIdSource } from '../../src/model/id.ts';
import { LoopTurns } from '../../src/observe/event-loop.ts';
import type { Services } from '../../src/store/capabilities.ts';
import type { Store } from '../../src/store/store.ts';

export type GivenServices = Partial<Omit<Services, 'store' | 'settings'>> & {
  readonly settings?: Partial<Settings>;
};

const { settings: defaults } = loadSettings({}, {}, {});

/** @param store may lack what the test does not reach */
export function servicesOver(store: Partial<Store>, given: GivenServices = {}): Services {
  const { clock = Date.now, settings: differing, ...others } = given;
  const settings: Settings = { ...defaults, ...differing };
  return {
    store: store as Store,
    clock,
    random: randomBytes,
    newId: createIdSource(clock, () => randomInt(32)),
    observe: () => undefined,
    settings,
    memory: createMemory(settings, new LoopTurns(), () => undefined),
    ...others,
  };
}
