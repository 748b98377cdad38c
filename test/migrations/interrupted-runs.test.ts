/** A migration that is killed, and one beside writers; the full tier has more kills, on both stores. */
import { test } from 'node:test';
import { openProjects } from './migrated-project.ts';
import { killRuns, runBesideWriters } from './run-faults.ts';

for (const [engine, openProject] of await openProjects()) {
  if (engine === 'SQLite') {
    test('continues after a kill, and gives each document to up once', () => killRuns(openProject(), 2));
  } else {
    test('loses no acknowledged write of an old server, and brings all to the new shape', () =>
      runBesideWriters(openProject()));
  }
}
