/**
 * Brings a database back to where its schema had just been made. What the store keeps across its life is in tables, and so is emptied
 * or put back: rows, revisions, writers, tallies, the list of processes. What it reads besides is of a session (locks, LISTEN, prepared
 * statements), and sessions are ended. What remains is what no store reads: numbers of transactions, and the planner's statistics.
 */
import type pg from 'pg';

/** How long a session may take to end when it is told to. */
const endingMs = 5000;

/** Tables that say what the schema is: they stay. The counters stay too, at 0. */
const kept = `'comity_migrations', 'comity_indexes', 'comity_counters'`;

const ownRelations = `pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`;

/**
 * The shape of everything in the database, as a digest: relations with their columns, rights and options; functions, triggers,
 * constraints and types; and what the store notes of its schema `comity`. Equal before and after means that no test changed the schema.
 */
export async function shapeOf(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ shape: string }>(`SELECT md5(concat_ws('|',
    (SELECT string_agg(concat_ws(' ', c.oid, c.relname, c.relnatts, c.relacl, c.reloptions, c.relhastriggers, c.relrowsecurity), ',' ORDER BY c.oid) FROM ${ownRelations}),
    (SELECT string_agg(concat_ws(' ', oid, nspname, nspacl), ',' ORDER BY oid) FROM pg_namespace),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_proc WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(' ', oid, tgenabled), ',' ORDER BY oid) FROM pg_trigger),
    (SELECT string_agg(concat_ws(' ', attrelid, attnum, attname, atttypid, attnotnull), ',' ORDER BY attrelid, attnum)
      FROM pg_attribute WHERE attrelid >= 16384 AND attisdropped IS FALSE AND attnum > 0),
    (SELECT string_agg(concat_ws(' ', indexrelid, indisvalid, indisready), ',' ORDER BY indexrelid) FROM pg_index WHERE indexrelid >= 16384),
    (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_constraint WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(' ', datacl, datconnlimit), ',') FROM pg_database WHERE datname = current_database()),
    (SELECT string_agg(concat_ws(' ', setrole, setconfig), ',') FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
      WHERE d.datname = current_database()),
    (SELECT string_agg(concat_ws(' ', n, name), ',' ORDER BY n) FROM comity.comity_counters),
    (SELECT string_agg(concat_ws(' ', number, name), ',' ORDER BY number) FROM comity.comity_migrations),
    (SELECT string_agg(concat_ws(' ', name, definition), ',' ORDER BY name) FROM comity.comity_indexes)
  )) AS shape`);
  return rows[0]?.shape ?? '';
}

/** Ends all other sessions of the database and empties its tables. @param client a superuser's, on the database itself */
export async function emptyTables(client: pg.Client): Promise<void> {
  // A batch that is still on its way in a session would be committed after the tables are empty.
  await client.query(
    `SELECT pg_terminate_backend(pid, ${endingMs}) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
  );
  // A table that takes no room never held a row since it was made or truncated; truncating all of fifty with their indexes takes ten times as long.
  await client.query(`DO $$
    DECLARE written text;
    BEGIN
      SELECT string_agg(c.oid::regclass::text, ', ') INTO written FROM ${ownRelations}
        AND c.relkind = 'r' AND c.relname NOT IN (${kept}) AND (pg_relation_size(c.oid) > 0 OR c.reltuples >= 0);
      IF written IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || written || ' RESTART IDENTITY';
      END IF;
      UPDATE comity.comity_counters SET rev = 0 WHERE rev <> 0;
    END $$`);
}
