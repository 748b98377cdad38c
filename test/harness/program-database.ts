/** The database of a program: its tables are there when it starts, since making them is what takes long in a first start. */
import { loadConfiguration } from '../../src/config/load-configuration.ts';
import { storeTables } from '../../src/store-tables.ts';
import { databaseWith, type TestDatabase } from './postgres-database.ts';

/** @param config path of the program's configuration */
export async function databaseOfProgram(config: string): Promise<TestDatabase> {
  const { configuration } = await loadConfiguration(config);
  return databaseWith(storeTables(configuration));
}
