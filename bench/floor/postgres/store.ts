/**
 * The tables of the floor programs in PostgreSQL, and their rows: the same columns, documents and indexes as those of
 * `bench/floor/store.ts`.
 */
import { productCreatedMs, productDocument, productId } from '../../product.ts';
import { connectFloor, query } from './client.ts';

const rowsPerStatement = 5000;

/** Makes the tables in the schema, with this many rows. */
export async function seedFloorTables(url: string, schema: string, rows: number): Promise<void> {
  const client = await connectFloor(url);
  try {
    await client.query(`CREATE SCHEMA ${schema}`);
    await client.query(
      `CREATE TABLE ${schema}.t (id text COLLATE "C" PRIMARY KEY, rev bigint NOT NULL, doc text NOT NULL, owner text,
        created_at bigint NOT NULL, updated_at bigint NOT NULL, deleted_at bigint);
       CREATE TABLE ${schema}.events (rev bigint PRIMARY KEY, id text COLLATE "C" UNIQUE, type text, doc text, created_at bigint)`,
    );
    for (let first = 0; first < rows; first += rowsPerStatement) {
      const indexes = Array.from({ length: Math.min(rowsPerStatement, rows - first) }, (_, at) => first + at);
      await query(
        client,
        '',
        `INSERT INTO ${schema}.t SELECT id, rev, doc, NULL, at, at, NULL
         FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) AS row (id, rev, doc, at)`,
        [
          indexes.map(productId),
          indexes.map((index) => index + 1),
          indexes.map(productDocument),
          indexes.map(productCreatedMs),
        ],
      );
    }
    await client.query(
      `CREATE INDEX ON ${schema}.t (((doc::jsonb ->> 'price')::float8), id);
       CREATE UNIQUE INDEX ON ${schema}.t ((doc::jsonb ->> 'sku'));
       ANALYZE ${schema}.t`,
    );
  } finally {
    await client.end();
  }
}
