/** A schema in words, made from the server's catalogue: tables with their columns, constraints and storage, indexes, functions. */
import type pg from 'pg';

export async function dumpSchema(client: pg.Client, schema: string): Promise<string> {
  const read = async (sql: string): Promise<readonly string[]> =>
    (await client.query<[string]>({ text: sql, values: [schema], rowMode: 'array' })).rows.map(
      ([text]) => text,
    );
  const [made] = (
    await client.query<{ made: string }>(
      `SELECT string_agg(number || ' ' || name, ', ' ORDER BY number) AS made FROM ${schema}.comity_migrations`,
    )
  ).rows;
  const parts = [await read(tablesSql), await read(indexesSql), await read(functionsSql)].flat();
  return `-- migrations ${made?.made}\n${parts.map((part) => `${part.replaceAll(`${schema}.`, 'comity.').replaceAll(`'${schema}'`, "'comity'")};\n`).join('')}`;
}

/** Names of the columns in order, by table. */
export async function columnsOf(
  client: pg.Client,
  schema: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await client.query<{ relname: string; columns: readonly string[] }>(
    `SELECT c.relname, json_agg(a.attname ORDER BY a.attnum) AS columns
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
     WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r' GROUP BY c.relname`,
    [schema],
  );
  return new Map(rows.map(({ relname, columns }) => [relname, columns]));
}

/** Each row as `number name`. */
export async function countersOf(client: pg.Client, schema: string): Promise<readonly string[]> {
  const { rows } = await client.query(
    `SELECT n || ' ' || name AS text FROM ${schema}.comity_counters ORDER BY n`,
  );
  return rows.map(({ text }) => String(text));
}

const tablesSql = `
SELECT format(E'CREATE %sTABLE %I.%I (\\n  %s\\n)%s', CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, n.nspname, c.relname,
  (SELECT string_agg(part, E',\\n  ' ORDER BY rank, place) FROM (
    SELECT 1 AS rank, a.attnum::text AS place, format('%I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
      CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || quote_ident(o.collname) ELSE '' END,
      CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END) AS part
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation o ON o.oid = a.attcollation
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 2, k.conname, format('CONSTRAINT %I %s', k.conname, pg_get_constraintdef(k.oid))
    FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype <> 'n'
  ) AS parts),
  coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r' ORDER BY c.relname COLLATE "C"`;

const indexesSql = `
SELECT pg_get_indexdef(x.indexrelid) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_namespace n ON n.oid = i.relnamespace
WHERE n.nspname = $1 AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.oid)
ORDER BY x.indrelid::regclass::text COLLATE "C", i.relname COLLATE "C"`;

const functionsSql = `
SELECT rtrim(pg_get_functiondef(p.oid), E'\\n') FROM pg_proc p WHERE p.pronamespace = $1::regnamespace ORDER BY p.proname COLLATE "C"`;
