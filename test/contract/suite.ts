/**
 * The promises of store/store.ts as tests that know nothing of an engine. Every engine goes through it unchanged.
 */
import { after, afterEach, before, describe } from 'node:test';
import type { Table } from '../../src/store/store.ts';
import { aggregateTests } from './aggregates.ts';
import { chainTests } from './chains.ts';
import { commitTests } from './commit.ts';
import type { Bench, Engine, Opened } from './engine.ts';
import { eventTests } from './events.ts';
import { filterTests, randomFilterTests } from './filters.ts';
import { suiteTables } from './fixture.ts';
import { instantTests } from './instants.ts';
import { lostUnitTests } from './lost-units.ts';
import { manyRowsTests } from './many-rows.ts';
import { octetTests } from './octets.ts';
import { pageTests, randomPageTests } from './pages.ts';
import { referenceTests } from './references.ts';
import { randomRelatedTests, relatedTests } from './related.ts';
import { relatedWaysTests } from './related-ways.ts';
import { searchTests } from './search.ts';
import { rankTests } from './search-rank.ts';
import { uniqueTests } from './unique.ts';
import { upkeepTests } from './upkeep.ts';

export function contractSuite(name: string, engine: Engine): void {
  describe(`store contract: ${name}`, () => {
    topic('commit', engine, commitTests);
    topic('chains', engine, chainTests);
    topic('references', engine, referenceTests);
    topic('filters', engine, filterTests);
    topic('related', engine, relatedTests);
    topic('ways to related rows', engine, relatedWaysTests);
    topic('pages', engine, pageTests);
    topic('many rows', engine, manyRowsTests);
    topic('search', engine, searchTests);
    topic('rank', engine, rankTests);
    topic('octets', engine, octetTests);
    topic('aggregates', engine, aggregateTests);
    topic('instants', engine, instantTests);
    topic('unique', engine, uniqueTests);
    topic('events', engine, eventTests);
    topic('upkeep', engine, upkeepTests);
    topic('lost units', engine, lostUnitTests);
  });
}

/** What the suite asks at random, asked many times over: for the full tier. */
export function contractAtRandom(name: string, engine: Engine): void {
  describe(`store contract at random: ${name}`, () => {
    topic('filters', engine, (bench) => randomFilterTests(bench, { passed: 400, negated: 100 }));
    topic('related', engine, (bench) => randomRelatedTests(bench, 200));
    topic('pages', engine, (bench) => randomPageTests(bench, 250));
  });
}

function topic(title: string, engine: Engine, tests: (bench: Bench) => void): void {
  describe(title, () => {
    const fresh: Opened[] = [];
    let shared: Opened | undefined;
    const opened = (): Opened => {
      if (shared === undefined) throw new Error('the store is not open yet');
      return shared;
    };
    before(async () => {
      shared = await engine(suiteTables);
    });
    // At the end of its test, so that the next one may have the data of the same place, emptied.
    afterEach(async () => {
      for (const each of fresh.splice(0)) await each.dispose();
    });
    after(() => shared?.dispose());
    tests({
      opened,
      store: () => opened().store,
      async fresh(declared: readonly Table[] = suiteTables) {
        const made = await engine(declared);
        fresh.push(made);
        return made;
      },
    });
  });
}
