/** The store contract on both engines, with many more filters and lists at random than test/contract asks for. */
import { postgresEngine } from '../../contract/postgres-engine.ts';
import { sqliteEngine } from '../../contract/sqlite-engine.ts';
import { contractAtRandom } from '../../contract/suite.ts';

contractAtRandom('SQLite', sqliteEngine);
contractAtRandom('PostgreSQL', postgresEngine);
