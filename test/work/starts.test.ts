/** Starts of work that ends its process (§4.14.5): counted across processes, given up after three, and told from work beside it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { createStarts, type Starts, startsTable } from '../../src/work/starts.ts';
import { servicesOver } from '../harness/services-over.ts';
import { engines } from '../harness/stores.ts';

const before = new Date(Date.UTC(2030, 0, 1)).toISOString();
const work = (id: string, updatedAt = before) => ({ table: 'received', id, updatedAt });

for (const [engine, open] of engines) {
  test(`${engine}: gives up the work that ended each of three processes, and not what ran beside it`, async (context) => {
    const [store] = await open(context);
    const dead = new Set<string>();
    let now = Date.UTC(2031, 0, 1);
    let processes = 0;
    const start = (): Promise<Starts> => {
      processes += 1;
      const own: Store = {
        ...store,
        shared: true,
        processId: `p${processes}`,
        hasEnded: (id) => dead.has(id),
      };
      const services = servicesOver(own, { clock: () => now, observe: ({ kind }) => assert.fail(kind) });
      return createStarts(services, () => () => undefined);
    };
    const kill = (): void => {
      dead.add(`p${processes}`);
      now += 1000;
    };
    const rows = () => store.count(startsTable, { op: 'always' });

    const first = await start();
    assert.equal((await first.begin(work('poison'))).isUsedUp, false);
    assert.equal(await rows(), 1, 'that of the process');
    kill();
    const second = await start();
    const both = await Promise.all(['poison', 'beside'].map((id) => second.begin(work(id))));
    assert.deepEqual(
      both.map(({ isUsedUp }) => isUsedUp),
      [false, false],
    );
    await (await second.begin(work('new', new Date(now).toISOString()))).end();
    assert.equal(await rows(), 3);
    kill();
    const third = await start();
    const alone = await third.begin(work('poison'));
    assert.equal(alone.isUsedUp, false);
    let isBegun = false;
    const waiting = third.begin(work('beside')).then(() => {
      isBegun = true;
    });
    assert.equal((await third.begin(work('other'))).isUsedUp, false, 'was not counted before');
    await store.read(startsTable, 'none');
    assert.equal(isBegun, false);
    kill();
    const fourth = await start();
    const poison = await fourth.begin(work('poison'));
    assert.equal(poison.isUsedUp, true);
    await poison.end();
    const beside = await fourth.begin(work('beside'));
    assert.equal(beside.isUsedUp, false);
    await beside.end();
    await (await fourth.begin(work('other'))).end();
    await fourth.close();
    assert.equal(await rows(), 0, 'a process that stops in order leaves nothing');
    await alone.end();
    await waiting;
  });
}
