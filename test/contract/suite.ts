/**
 * What store.ts promises, as tests that know nothing of an engine. Every engine goes through it unchanged.
 */
import { after, before, describe } from 'node:test';
import type { Table } from '../../src/store/store.ts';
import { commitTests } from './commit.ts';
import type { Bench, Engine, Opened } from './engine.ts';
import { eventTests } from './events.ts';
import { filterTests } from './filters.ts';
import { suiteTables } from './fixture.ts';
import { octetTests } from './octets.ts';
import { pageTests } from './pages.ts';
import { referenceTests } from './references.ts';
import { upkeepTests } from './upkeep.ts';

export function contractSuite(name: string, engine: Engine): void {
  describe(`store contract: ${name}`, () => {
    topic('commit', engine, commitTests);
    topic('references', engine, referenceTests);
    topic('filters', engine, filterTests);
    topic('pages', engine, pageTests);
    topic('octets', engine, octetTests);
    topic('events', engine, eventTests);
    topic('upkeep', engine, upkeepTests);
  });
}

function topic(title: string, engine: Engine, tests: (bench: Bench) => void): void {
  describe(title, () => {
    const all: Opened[] = [];
    const fresh = async (declared: readonly Table[] = suiteTables): Promise<Opened> => {
      const opened = await engine(declared);
      all.push(opened);
      return opened;
    };
    let shared: Opened | undefined;
    const opened = (): Opened => {
      if (shared === undefined) throw new Error('the store is not open yet');
      return shared;
    };
    before(async () => {
      shared = await fresh();
    });
    after(async () => {
      for (const each of all) await each.dispose();
    });
    tests({ opened, store: () => opened().store, fresh });
  });
}
