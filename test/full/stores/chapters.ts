/** Chapters of requests as tests over one pair of programs: each ends with no difference, and the next goes on from there. */
import { after, before, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Pair, startPair } from './pair.ts';

export type Chapter = readonly [title: string, ask: (pair: Pair) => Promise<void>];

export const fixture = (name: string) =>
  fileURLToPath(new URL(`../../wire/fixtures/${name}.config.ts`, import.meta.url));

/** Starts the pair before the tests of this group, and stops it after them. */
export function pairFor(configPath: string): () => Pair {
  let pair: Pair | undefined;
  before(async () => {
    pair = await startPair(configPath);
  });
  after(() => pair?.stop());
  return () => {
    if (pair === undefined) throw new Error('the programs did not start');
    return pair;
  };
}

export function chapters(pair: () => Pair, all: readonly Chapter[]): void {
  for (const [title, ask] of all) {
    it(title, async () => {
      await ask(pair());
      pair().settle();
    });
  }
}
