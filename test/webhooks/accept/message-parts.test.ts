/** The body of a long message, on every store: kept in parts, each by a unit of its own, and read again as it came. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { messagePartOctets } from '../../../src/memory/work-rules.ts';
import { always, byId } from '../../../src/model/filter.ts';
import { unitCharacters } from '../../../src/store/group-commit.ts';
import { type Store, StoreUnavailable, type Unit } from '../../../src/store/store.ts';
import { type Accept, createAccept } from '../../../src/webhooks/receiving/accept-message.ts';
import { bodyOf } from '../../../src/webhooks/receiving/message-rows.ts';
import {
  contentId,
  type ReceivedContent,
  receivedCollection,
  receivedContentsTable,
} from '../../../src/webhooks/receiving/received-tables.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines } from '../../harness/stores.ts';
import { declared } from './walked-senders.ts';

const MiB = 1024 * 1024;
const bank = declared('bank', 'standard');
let made = 0;

function acceptOn(store: Store, commit: Store['commit'] = (unit) => store.commit(unit)): Accept {
  const newId = () => {
    made += 1;
    return `message${made}`;
  };
  const services = servicesOver({ ...store, commit }, { clock: () => 1000, newId });
  return createAccept(
    services,
    { base: '/api/v1', senders: new Map([['bank', bank]]) },
    { of: () => [], tokensOf: () => [] },
  );
}

function verified(key: string | undefined, body: Uint8Array) {
  const facts = { key, oversizedKey: undefined, type: null, challenge: undefined };
  return { message: { body, header: () => undefined }, facts };
}

async function contentOf(store: Store, key: string): Promise<ReceivedContent> {
  const row = await store.read(receivedContentsTable, contentId('bank', key));
  return JSON.parse(row?.doc ?? 'null') as ReceivedContent;
}

async function idsOf(store: Store, table: string): Promise<readonly string[]> {
  const rows = await store.plan({ table, filter: always, sort: byId, limit: 100 }).rows({ from: 'start' });
  return rows.map(({ id }) => id);
}

for (const [engine, open] of engines) {
  for (const [length, units] of [
    [10, 1],
    [3 * MiB, 1],
    [3 * MiB + 1, 3],
    [25 * MiB, 10],
  ] as const) {
    test(`${length} octets are kept as they came, in ${units} short units, with ${engine}`, async (context) => {
      const [store] = await open(context);
      const characters: number[] = [];
      const accept = acceptOn(store, (unit: Unit) => {
        characters.push(unitCharacters(unit));
        return store.commit(unit);
      });
      const body = randomBytes(length);
      assert.equal(await accept.keep(bank, verified('msg_1', body)), 'accepted');
      assert.equal(characters.length, units);
      assert.ok(Math.max(...characters) <= (messagePartOctets / 3) * 4 + 1000, `${Math.max(...characters)}`);
      const content = await contentOf(store, 'msg_1');
      // A process of an earlier version looks for a body alone, and fails without one.
      assert.equal('body' in content, units === 1);
      const kept = await bodyOf(store, content, length);
      assert.ok(kept?.equals(body));
    });
  }

  test(`of a long message that comes twice at once, at two processes, nothing is left of the other, with ${engine}`, async (context) => {
    const handles = await open(context);
    const body = randomBytes(4 * MiB);
    const kept = await Promise.all(
      handles.map((store) => acceptOn(store).keep(bank, verified(undefined, body))),
    );
    assert.deepEqual(kept.toSorted(), ['accepted', 'duplicate']);
    const [store] = handles;
    const [id = '', ...others] = await idsOf(store, receivedCollection.name);
    assert.deepEqual(others, []);
    const contents = await idsOf(store, receivedContentsTable);
    assert.deepEqual(
      contents.filter((each) => !each.startsWith('bank/')),
      [`${id}/000001`, `${id}/000002`],
    );
    assert.equal(await acceptOn(store).keep(bank, verified(undefined, body)), 'duplicate');
    assert.deepEqual(await idsOf(store, receivedContentsTable), contents);
  });

  test(`a store that fails between two parts leaves no message, and takes it again, with ${engine}`, async (context) => {
    const [store] = await open(context);
    const body = randomBytes(7 * MiB);
    let units = 0;
    const failing = acceptOn(store, (unit) => {
      units += 1;
      if (units === 2) return Promise.reject(new StoreUnavailable('it failed', { retryAfterSeconds: 1 }));
      return store.commit(unit);
    });
    await assert.rejects(failing.keep(bank, verified('msg_1', body)), StoreUnavailable);
    assert.deepEqual(await idsOf(store, receivedCollection.name), []);
    assert.equal(await contentOf(store, 'msg_1'), null);
    assert.equal(await acceptOn(store).keep(bank, verified('msg_1', body)), 'accepted');
    assert.ok((await bodyOf(store, await contentOf(store, 'msg_1'), body.length))?.equals(body));
  });

  test(`a body without one of its parts is gone, with ${engine}`, async (context) => {
    const [store] = await open(context);
    const body = randomBytes(7 * MiB);
    await acceptOn(store).keep(bank, verified('msg_1', body));
    const content = await contentOf(store, 'msg_1');
    const part = { table: receivedContentsTable, id: `${content.id}/000002` };
    const rev = (await store.read(part.table, part.id))?.rev ?? 0;
    await store.commit({ changes: [{ ...part, expect: { rev }, next: null }], events: [] });
    assert.equal(await bodyOf(store, content, body.length), undefined);
  });
}
