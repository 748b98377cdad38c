/** Embedded SQLite under the store contract. */
import { sqliteEngine } from './sqlite-engine.ts';
import { contractSuite } from './suite.ts';

contractSuite('SQLite', sqliteEngine);
