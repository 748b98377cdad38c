/**
 * The stores over which tests repeat themselves. A run of the whole default tier has them on SQLite alone: the contract suite, which holds both
 * stores equal, runs on PostgreSQL there too. The full tier has them on both, and so has a run of files that are named.
 */
import { describe } from 'node:test';

export type EngineName = 'SQLite' | 'PostgreSQL';

export const engineNames: readonly EngineName[] =
  process.env.COMITY_TEST_TIER === 'default' ? ['SQLite'] : ['SQLite', 'PostgreSQL'];

/** A suite for each store. What the tests start in its body ends with it. */
export function describeOnEachStore(
  title: string,
  tests: (engine: EngineName) => void | Promise<void>,
): void {
  for (const engine of engineNames) describe(`${title} on ${engine}`, () => tests(engine));
}
