/** Twenty kills of a migration on each store, and two migrations at once on the one that processes share. */
import { describe, test } from 'node:test';
import { openProjects } from '../../migrations/migrated-project.ts';
import { endProcesses, killRespelling, killRuns, runTwoAtOnce } from '../../migrations/run-faults.ts';

for (const [engine, openProject] of await openProjects()) {
  describe(engine, () => {
    test('continues after each of twenty kills', () => killRuns(openProject(), 20));
    test('keeps every date-time in UTC after each of five kills', () => killRespelling(openProject(), 5));
    test('is refused after a batch ended three processes, until it is tried by hand', () =>
      endProcesses(openProject()));
    if (engine === 'PostgreSQL')
      test('lets one of two migrations at once make each batch', () => runTwoAtOnce(openProject()));
  });
}
