/** Versions of tables. All that are asked for in one turn of the event loop are one statement. */
import { quoteName } from '../../quote-name.ts';
import { versionText } from '../../version-text.ts';
import type { ReadLane } from '../connection/read-lane.ts';
import type { TableNumbers } from '../schema/layout.ts';
import { createGather } from './gather.ts';

const tablesPerStatementMax = 1000;

export type Versions = {
  /**
   * @throws StoreUnavailable
   * @throws TypeError when no table has the name
   */
  version(table: string): Promise<string>;
};

/** @param schema not quoted */
export function createVersions(
  lane: Pick<ReadLane, 'send'>,
  numbers: TableNumbers,
  schema: string,
): Versions {
  const sql = `SELECT n, rev FROM ${quoteName(schema)}.comity_counters WHERE n = ANY ((SELECT $1::int[])::int[])`;
  const revOf = createGather(async (asked: readonly number[]) => {
    const revs = new Map<number, number>();
    for (const [n, rev] of await lane.send({ sql, values: [asked] })) revs.set(Number(n), Number(rev));
    return revs;
  }, tablesPerStatementMax);
  return {
    async version(table) {
      const number = numbers.get(table);
      if (number === undefined) throw new TypeError(`no table is named ${table}`);
      return versionText((await revOf(number)) ?? 0);
    },
  };
}
