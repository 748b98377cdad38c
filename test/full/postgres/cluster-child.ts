/**
 * A process that cluster.test.ts kills while it owns a cluster. Prints three lines: the process id of the keeper at
 * once, and when the server is there its URL and what it answers to `SELECT 1`.
 */
import pg from 'pg';
import { spawnKeeper } from '../../harness/postgres-server/keeper-process.ts';

const keeper = spawnKeeper({});
console.log(keeper.pid);
const url = await keeper.start();
const client = new pg.Client({ connectionString: url });
client.on('error', () => undefined);
await client.connect();
const { rows } = await client.query<{ one: number }>('SELECT 1 AS one');
console.log(`${url}\n${rows[0]?.one}`);
