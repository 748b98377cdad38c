/** Migrations of documents through the command line on the embedded store, and one on PostgreSQL; the full tier has all of them there. */
import { openProjects } from './migrated-project.ts';
import { migrationSuite } from './migration-suite.ts';

for (const [engine, openProject] of await openProjects())
  migrationSuite(engine, openProject, { part: engine === 'SQLite' ? 'some' : 'one' });
