/** Drops indexes before a restore and creates them again from the server's definitions, whoever declared them. */
import type { FileTable } from '../../backup-file/layout.ts';
import { UnfitBackup } from '../../backup-file/read-file.ts';
import { quoteName } from '../../quote-name.ts';
import { sqlState } from '../connection/connection-failure.ts';
import { DatabaseFailed } from '../schema/schema-failure.ts';
import type { Session } from '../schema/session.ts';
import { nameIn } from '../schema-tables.ts';

export type DroppedIndex = {
  readonly name: string;
  readonly table: FileTable;
  /** The server's definition. */
  readonly sql: string;
  /** The indexed expressions, as a list in SQL. */
  readonly keys: string;
};

/** Drops every index of the tables but the primary keys. */
export async function dropIndexes(
  session: Session,
  schema: string,
  tables: readonly FileTable[],
): Promise<readonly DroppedIndex[]> {
  const dropped: DroppedIndex[] = [];
  for (const table of tables) {
    const indexes = await session.rows(
      `SELECT i.relname, pg_get_indexdef(x.indexrelid),
         (SELECT string_agg('(' || pg_get_indexdef(x.indexrelid, at, false) || ')', ', ')
            FROM generate_series(1, x.indnkeyatts) AS at)
       FROM pg_catalog.pg_index x
       JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
       WHERE x.indrelid = $1::regclass AND NOT x.indisprimary ORDER BY i.relname`,
      [nameIn(schema, table)],
    );
    for (const [name, sql, keys] of indexes) {
      await session.rows(`DROP INDEX ${quoteName(schema)}.${quoteName(String(name))}`);
      dropped.push({ name: String(name), table, sql: String(sql), keys: String(keys) });
    }
  }
  return dropped;
}

/** @throws UnfitBackup with the reason why the rows do not fit the index; `file` is the backup */
export async function makeIndex(
  session: Session,
  schema: string,
  index: DroppedIndex,
  file: string,
): Promise<void> {
  await session.rows('SAVEPOINT before_index');
  try {
    await session.rows(index.sql);
  } catch (error) {
    const state = error instanceof DatabaseFailed ? sqlState(error.cause) : undefined;
    if (state !== uniqueViolation && state !== programLimitExceeded) throw error;
    await session.rows('ROLLBACK TO SAVEPOINT before_index');
    const reason = await reasonOf(session, schema, index, error as DatabaseFailed);
    throw new UnfitBackup(`${file} does not fit the index ${index.name}: ${reason}`, { cause: error });
  }
  await session.rows('RELEASE SAVEPOINT before_index');
}

const uniqueViolation = '23505';
const programLimitExceeded = '54000';

/** Describes equal rows by their value, and a value too long for the index by its row. */
async function reasonOf(
  session: Session,
  schema: string,
  index: DroppedIndex,
  error: DatabaseFailed,
): Promise<string> {
  const { cause } = error;
  if (sqlState(cause) === uniqueViolation) {
    const detail = cause instanceof Error && 'detail' in cause ? cause.detail : undefined;
    return detail === undefined ? error.message : `${error.message}: ${String(detail)}`;
  }
  const [row] = await session.rows(
    `SELECT id FROM ${nameIn(schema, index.table)} ORDER BY octet_length(concat(${index.keys})) DESC LIMIT 1`,
  );
  return `${error.message}; the longest value is in row "${row?.[0]}" of ${index.table.name}`;
}
