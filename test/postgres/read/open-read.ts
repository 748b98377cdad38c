/** What the reading side of the store needs: a schema of the contract's tables, lanes whose calls are counted, and rows. */
import { after } from 'node:test';
import pg from 'pg';
import { addressOf } from '../../../src/store/postgres/connection/address.ts';
import type { Call } from '../../../src/store/postgres/connection/connection.ts';
import { createReadLane, type ReadLane, ScanLane } from '../../../src/store/postgres/connection/lanes.ts';
import { openSchema } from '../../../src/store/postgres/schema/open-schema.ts';
import {
  type Layout,
  layoutsOf,
  type TableNumbers,
} from '../../../src/store/postgres/schema/schema-layout.ts';
import type { Table } from '../../../src/store/store.ts';
import { tables as contractTables } from '../../contract/fixture.ts';
import { databaseWith } from '../../harness/postgres-database.ts';

export const schema = 'comity';

export type OpenRead = {
  readonly client: pg.Client;
  readonly layouts: readonly Layout[];
  readonly numbers: TableNumbers;
  readonly layoutOf: (table: string) => Layout;
  readonly read: Pick<ReadLane, 'send'>;
  readonly scan: Pick<ScanLane, 'read'>;
  /** What was sent on each lane since it was last emptied. */
  readonly sent: { read: Call[]; scan: Call[] };
};

/** Gone when the tests of the file are over. */
export async function openRead(tables: readonly Table[] = contractTables): Promise<OpenRead> {
  const database = await databaseWith(tables);
  const address = addressOf(database.url);
  const connecting = { address, connectTimeoutMs: 5000 };
  const { numbers } = await openSchema(address, {
    schema,
    tables,
    observe: () => undefined,
    connectTimeoutMs: 5000,
  });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const read = createReadLane({ ...connecting, timeoutMs: 10_000 }, 2);
  const scan = new ScanLane({ ...connecting, timeoutMs: 10_000 }, 2, 16);
  after(async () => {
    await Promise.all([read.close(), scan.close(), client.end()]);
    await database.dispose();
  });
  const sent: OpenRead['sent'] = { read: [], scan: [] };
  const layouts = layoutsOf(tables, schema);
  return {
    client,
    layouts,
    numbers,
    sent,
    layoutOf(table) {
      const layout = layouts.find((each) => each.table.name === table);
      if (layout === undefined) throw new TypeError(`no table is named ${table}`);
      return layout;
    },
    read: {
      send(call) {
        sent.read.push(call);
        return read.send(call);
      },
    },
    scan: {
      read(call) {
        sent.scan.push(call);
        return scan.read(call);
      },
    },
  };
}

/** Puts a thing past the committer. */
export async function insertThing({ client }: OpenRead, id: string, doc: unknown, rev = 1): Promise<void> {
  await client.query(
    `INSERT INTO ${schema}.things (id, rev, created_at, updated_at, doc) VALUES ($1, $2, 1, 1, $3)`,
    [id, rev, JSON.stringify(doc)],
  );
}
