/**
 * A process that commits units without end and prints the id of each once it is acknowledged: what a crash test
 * kills; pipes are written synchronously. `node crash-child.ts FOLDER [failures]`: ends by itself after that many refused units.
 */
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { event, put, tables, things, unit } from '../contract/fixture.ts';

const [folder = '', failuresMax = 'Infinity'] = process.argv.slice(2);
const store = await openSqliteStore({ folder, tables });
process.stdout.write('open\n');

let failures = 0;
const start = `${process.pid}-${Date.now()}`;

async function commitOnAndOn(writer: number): Promise<void> {
  for (let index = 0; failures < Number(failuresMax); index += 1) {
    const id = `${start}-${writer}-${index}`;
    const body = { name: 'x'.repeat(index % 700), sku: id };
    try {
      const commit = await store.commit(unit(put(things, id, body), event(`evt_${id}`)));
      if (commit.outcome === 'committed') process.stdout.write(`${commit.rev} ${id}\n`);
    } catch (error) {
      failures += 1;
      process.stdout.write(`failed ${error instanceof Error ? error.name : String(error)}\n`);
    }
  }
}

await Promise.all(Array.from({ length: 16 }, (_, writer) => commitOnAndOn(writer)));
process.stdout.write('over\n');
// Not closed: the process ends as it stands, like one that is killed.
process.exit(0);
