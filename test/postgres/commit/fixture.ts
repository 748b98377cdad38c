/** A committer over a schema of its own, and ways to look at what it did from outside. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Observation } from '../../../src/observe/observation.ts';
import type { UnitBounds } from '../../../src/store/group-commit.ts';
import { ProvisionalRevisions } from '../../../src/store/lines.ts';
import { Committer, type CommitterOptions } from '../../../src/store/postgres/commit/committer.ts';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import { type Connection, createConnection } from '../../../src/store/postgres/connection/connection.ts';
import { openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import {
  type Layout,
  layoutsOf,
  type TableNumbers,
} from '../../../src/store/postgres/schema/schema-layout.ts';
import type { Row, Table } from '../../../src/store/store.ts';
import { tables as contractTables } from '../../contract/fixture.ts';
import type { Ending } from '../../harness/listening.ts';
import { databaseWith } from '../../harness/postgres-database.ts';

export const schema = 'comity';
export const channel = 'comity_comity';

export type Place = {
  readonly url: string;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  /** A connection of the test's own. */
  readonly look: pg.Client;
};

/** A schema without rows, given back when the test is over. */
export async function freshPlace(context: Ending, tables: readonly Table[] = contractTables): Promise<Place> {
  const database = await databaseWith(tables);
  context.after(() => database.dispose());
  const { numbers } = await openSchema(addressOf(database.url), {
    schema,
    tables,
    observe: () => undefined,
    connectTimeoutMs: 10_000,
  });
  const look = await lookAt(database.url);
  context.after(() => look.end());
  return { url: database.url, layouts: layoutsOf(tables, schema), numbers, look };
}

/** int8 comes as a number. */
export async function lookAt(url: string): Promise<pg.Client> {
  const look = new pg.Client({
    connectionString: url,
    types: { getTypeParser: ((oid: number) => (oid === 20 ? Number : String)) as never },
  });
  look.on('error', () => undefined);
  await look.connect();
  return look;
}

export type Running = {
  readonly committer: Committer;
  readonly connection: Connection;
  /** The statements of each flight that was sent. */
  readonly flights: (readonly string[])[];
};

type Changed = Partial<CommitterOptions> &
  Partial<UnitBounds> & {
    /** In place of the place's own, such as that of a proxy before it. */
    readonly url?: string;
    readonly onBatch?: (units: number) => void;
    readonly onFailed?: (error: unknown) => void;
  };

export function startCommitter(context: Ending, place: Place, options: Changed = {}): Running {
  const { url = place.url, timeoutMs = 5000, onBatch, onFailed, ...rest } = options;
  const observe = (observation: Observation): void => {
    if (observation.kind === 'units-committed') onBatch?.(observation.units);
    if (observation.kind === 'store-failed') onFailed?.(observation.error);
  };
  const connection = createConnection({
    address: addressOf(url),
    name: 'comity commit',
    connectTimeoutMs: timeoutMs,
    timeoutMs,
  });
  const flights: (readonly string[])[] = [];
  const committer = new Committer(
    {
      connection: recorded(connection, flights),
      layouts: place.layouts,
      numbers: place.numbers,
      schema,
      channel,
      writer: randomBytes(8).toString('hex'),
      revisions: new ProvisionalRevisions(),
      timeoutMs,
      retriesMax: 10,
      findOld: (table, updatedBefore, limit) => findOld(place.look, { table, updatedBefore, limit }),
      onChanged: () => undefined,
      observe,
      newestRev: undefined,
      onRaised: () => undefined,
      ...rest,
    },
    rest,
  );
  context.after(async () => {
    await committer.close();
    await connection.close();
  });
  return { committer, connection, flights };
}

function recorded(connection: Connection, flights: (readonly string[])[]): Connection {
  return {
    send: (calls, timeoutMs) => {
      flights.push(calls.map(({ sql }) => sql));
      return connection.send(calls, timeoutMs);
    },
    get inFlight() {
      return connection.inFlight;
    },
    get connected() {
      return connection.connected;
    },
    close: () => connection.close(),
    cut: (error) => connection.cut(error),
  };
}

async function findOld(
  look: pg.Client,
  { table, updatedBefore, limit }: { table: string; updatedBefore: number; limit: number },
): Promise<readonly string[]> {
  const sql = `SELECT id FROM ${schema}."${table}" WHERE updated_at < $1 LIMIT $2`;
  const { rows } = await look.query(sql, [updatedBefore, limit]);
  return rows.map(({ id }) => String(id));
}

/** Every row of a table by id, as the contract shows it. */
export async function rowsOf(look: pg.Client, table: string): Promise<readonly Row[]> {
  const { rows } = await look.query({
    text: `SELECT id, rev, doc, owner, created_at, updated_at, deleted_at FROM ${schema}."${table}" ORDER BY id COLLATE "C"`,
    rowMode: 'array',
  });
  return rows.map(([id, rev, doc, owner, createdAt, updatedAt, deletedAt]) => ({
    id,
    rev,
    doc,
    owner,
    createdAt,
    updatedAt,
    deletedAt,
  }));
}

/** The store-wide revision and that of each table, by name; the first is called ''. */
export async function counters(look: pg.Client): Promise<Readonly<Record<string, number>>> {
  const { rows } = await look.query(`SELECT name, rev FROM ${schema}.comity_counters`);
  return Object.fromEntries(rows.map(({ name, rev }) => [name, rev]));
}
