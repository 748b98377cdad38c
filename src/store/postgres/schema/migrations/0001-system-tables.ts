/**
 * The tables that the store keeps for itself, and the one function that its commits call.
 *
 * `comity_counters`: row 0 is the store-wide revision, whose lock every commit holds; one row a table is its version. Few rows that
 * change with every commit: pages stay nearly empty, so that new versions of a row find room beside the old one and no
 * index entry is written (HOT), and autovacuum comes by their number of changes, not by their share of a tiny table.
 */
export function systemTables(schema: string): readonly string[] {
  const hot =
    'fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0';
  return [
    // Which of these migrations were made, when (milliseconds since the epoch) and by which version of the program.
    `CREATE TABLE ${schema}.comity_migrations (
  number integer PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  made_at bigint NOT NULL,
  program text NOT NULL
)`,
    `CREATE TABLE ${schema}.comity_counters (
  n integer PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  rev bigint NOT NULL
) WITH (${hot})`,
    `INSERT INTO ${schema}.comity_counters (n, name, rev) VALUES (0, '', 0)`,
    // What each index of the store stands for: its fields by the client's names, and the text it was made from.
    `CREATE TABLE ${schema}.comity_indexes (
  name text COLLATE "C" PRIMARY KEY,
  table_name text COLLATE "C" NOT NULL,
  fields json NOT NULL,
  definition text NOT NULL
)`,
    // Which batch of each writer came last: how a writer whose connection broke learns whether it was committed.
    `CREATE TABLE ${schema}.comity_writers (
  writer text COLLATE "C" PRIMARY KEY,
  epoch bigint NOT NULL,
  batch bigint NOT NULL,
  first_rev bigint NOT NULL,
  last_rev bigint NOT NULL,
  seen_at bigint NOT NULL
) WITH (${hot})`,
    // Counts that may be forgotten by a crash, and need no log.
    `CREATE UNLOGGED TABLE ${schema}.comity_tallies (
  key text COLLATE "C" PRIMARY KEY,
  total bigint NOT NULL,
  expires_at bigint NOT NULL
) WITH (fillfactor = 50)`,
    `CREATE TABLE ${schema}.comity_processes (
  process text COLLATE "C" PRIMARY KEY,
  seen_at bigint NOT NULL,
  facts text NOT NULL
)`,
    // Fails the transaction unless the two are equal. VOLATILE, so that no planner leaves a call out or makes it early.
    `CREATE FUNCTION ${schema}.comity_expect(actual bigint, wanted bigint, what text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
  IF actual IS DISTINCT FROM wanted THEN
    RAISE EXCEPTION USING ERRCODE = 'CM001', MESSAGE = what;
  END IF;
  RETURN actual;
END
$body$`,
    // Never called: it makes plans that would look at it look dear (compile/steering.ts). IMMUTABLE, so that a bound may hold it.
    `CREATE FUNCTION ${schema}.comity_costly(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE COST 10000 AS $body$
BEGIN
  RETURN value;
END
$body$`,
  ];
}
