/**
 * The stores over which tests repeat themselves. A run of the whole default tier has them on SQLite alone: the contract suite, which holds both
 * stores equal, runs on PostgreSQL there too. The full tier has them on both, and so has a run of files that are named.
 */

export type EngineName = 'SQLite' | 'PostgreSQL';

export const engineNames: readonly EngineName[] =
  process.env.COMITY_TEST_TIER === 'default' ? ['SQLite'] : ['SQLite', 'PostgreSQL'];
