/** The table of the receiving floors in PostgreSQL, and keys that are in it before. */
import { dedupeKey, seededKey } from '../../received/messages.ts';
import { connectFloor, query } from '../postgres/client.ts';

const rowsPerStatement = 20_000;

/** Makes the table in a new schema, with this many keys. */
export async function seedReceivedTable(url: string, schema: string, count: number): Promise<void> {
  const client = await connectFloor(url);
  try {
    await client.query(
      `CREATE SCHEMA ${schema};
       CREATE TABLE ${schema}.received (id text COLLATE "C" PRIMARY KEY, body text NOT NULL, at bigint NOT NULL)`,
    );
    const insert = `INSERT INTO ${schema}.received SELECT id, '{}', 0 FROM unnest($1::text[]) AS row (id)`;
    // As in SQLite, see store.ts.
    for (const parity of [0, 1]) {
      for (let first = parity; first < count; first += 2 * rowsPerStatement) {
        const many = Math.min(rowsPerStatement, Math.ceil((count - first) / 2));
        const ids = Array.from({ length: many }, (_, place) =>
          dedupeKey('standard', seededKey(first + 2 * place, count)),
        );
        await query(client, '', insert, [ids]);
      }
    }
    await client.query(`ANALYZE ${schema}.received`);
  } finally {
    await client.end();
  }
}
