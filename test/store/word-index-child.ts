/** A process of its own that opens a store whose search index is not complete, says so, and stays until it is killed. */
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { Table } from '../../src/store/store.ts';

const [folder = '', tables = '[]'] = process.argv.slice(2);
await openSqliteStore({ folder, tables: JSON.parse(tables) as Table[] });
process.stdout.write('open\n');
setInterval(() => undefined, 1000);
