/** PostgreSQL under the store contract. */
import { postgresEngine } from './postgres-engine.ts';
import { contractSuite } from './suite.ts';

contractSuite('PostgreSQL', postgresEngine);
