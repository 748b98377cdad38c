/**
 * The migrations of the system tables, forwards only and in order: a number in `comity_migrations` is never run again, and a released
 * migration is never edited. The tables of collections are compared with the declaration instead (plan.ts).
 */

/**
 * The store's own tables, and the functions of its statements.
 * `comity_counters`: row 0 is the store-wide revision, whose lock every commit holds; one row per table is its version. Its few rows change
 * with every commit, so pages stay nearly empty: new versions of a row fit beside the old one without a new index entry (HOT). Autovacuum
 * starts by the number of changes, not by their share of a tiny table.
 */
export function systemTables(schema: string): readonly string[] {
  const hot =
    'fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0';
  return [
    // The migrations made, when (milliseconds since the epoch) and by which version of the program.
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
    // The store's indexes: their fields by the clients' names, and their definitions.
    `CREATE TABLE ${schema}.comity_indexes (
  name text COLLATE "C" PRIMARY KEY,
  table_name text COLLATE "C" NOT NULL,
  fields json NOT NULL,
  definition text NOT NULL
)`,
    // The last batch of each writer, by which a writer whose connection broke learns if it was committed.
    `CREATE TABLE ${schema}.comity_writers (
  writer text COLLATE "C" PRIMARY KEY,
  epoch bigint NOT NULL,
  batch bigint NOT NULL,
  first_rev bigint NOT NULL,
  last_rev bigint NOT NULL,
  seen_at bigint NOT NULL
) WITH (${hot})`,
    // Counts that a crash may lose, and that need no log.
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
    // Fails the transaction unless the two are equal. VOLATILE, so that no planner omits a call or makes it early.
    `CREATE FUNCTION ${schema}.comity_expect(actual bigint, wanted bigint, what text) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
  IF actual IS DISTINCT FROM wanted THEN
    RAISE EXCEPTION USING ERRCODE = 'CM001', MESSAGE = what;
  END IF;
  RETURN actual;
END
$body$`,
    // Never called: it makes plans that would call it look expensive (compile/steering.ts). IMMUTABLE, so that a bound may contain it.
    `CREATE FUNCTION ${schema}.comity_costly(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE COST 10000 AS $body$
BEGIN
  RETURN value;
END
$body$`,
  ];
}

export type Migration = {
  readonly number: number;
  readonly name: string;
  /** The statements of one transaction; `schema` is quoted. */
  readonly sql: (schema: string) => readonly string[];
};

/** The ranges over which the counter was raised (raised-revision.ts), each with the server that the store was on. */
function raises(schema: string): readonly string[] {
  return [
    `CREATE TABLE ${schema}.comity_raises (
  before bigint PRIMARY KEY,
  after bigint NOT NULL,
  made_at bigint NOT NULL,
  server text COLLATE "C" NOT NULL
)`,
  ];
}

export const migrations: readonly Migration[] = [
  { number: 1, name: 'system-tables', sql: systemTables },
  { number: 2, name: 'raises', sql: raises },
];

/** The number of a schema with every migration of this version. */
export const schemaNumber: number = migrations.at(-1)?.number ?? 0;
