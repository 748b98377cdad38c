/** Migrations of documents through the command line on PostgreSQL: what migrate-on-postgres.test.ts leaves out. */
import { openProjects } from '../../migrations/migrated-project.ts';
import { migrationSuite } from './migration-suite.ts';

for (const [engine, openProject] of await openProjects())
  if (engine !== 'SQLite') migrationSuite(engine, openProject, { part: 'more' });
