/**
 * The floor of receiving over PostgreSQL: each batch is one statement, which is a transaction of its own.
 *
 * Usage: node bench/floor/received/postgres.ts URL SCHEMA
 */
import { connectFloor, query } from '../postgres/client.ts';
import { receive } from './receive.ts';

const [url = '', schema = ''] = process.argv.slice(2);
const client = await connectFloor(url);
const insert = `INSERT INTO ${schema}.received SELECT id, body, $3::bigint FROM unnest($1::text[], $2::text[]) AS row (id, body)
  ON CONFLICT DO NOTHING`;

receive((batch) => {
  const ids = batch.filter((_, place) => place % 2 === 0);
  const bodies = batch.filter((_, place) => place % 2 === 1);
  return query(client, 'insert', insert, [ids, bodies, Date.now()]);
});
