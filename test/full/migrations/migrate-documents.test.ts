/** Migrations of documents through the command line on the embedded store. */
import { openProjects } from '../../migrations/migrated-project.ts';
import { migrationSuite } from './migration-suite.ts';

for (const [engine, openProject] of await openProjects())
  if (engine === 'SQLite')
    for (const part of ['some', 'more'] as const) migrationSuite(engine, openProject, { part });
