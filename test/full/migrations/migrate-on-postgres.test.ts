/** Migrations of documents through the command line on PostgreSQL: what is read and written. */
import { openProjects } from '../../migrations/migrated-project.ts';
import { migrationSuite } from './migration-suite.ts';

for (const [engine, openProject] of await openProjects())
  if (engine !== 'SQLite') migrationSuite(engine, openProject, { part: 'some' });
