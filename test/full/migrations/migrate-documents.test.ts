/** Migrations of documents through the command line, on both stores. */
import { openProjects } from '../../migrations/migrated-project.ts';
import { migrationSuite } from '../../migrations/migration-suite.ts';

for (const [engine, openProject] of await openProjects())
  migrationSuite(engine, openProject, { length: 'all' });
