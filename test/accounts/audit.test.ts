/** The audit trail: rows as `/audit` serves them, and facts that are noted in the background, in both stores. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { auditCollection, auditTable } from '../../src/accounts/account-tables.ts';
import { type AuditFact, auditSearchFields, createAudit } from '../../src/accounts/audit.ts';
import { createIdSource } from '../../src/model/id.ts';
import type { Observation } from '../../src/observe/observation.ts';
import type { Store } from '../../src/store/store.ts';
import { servicesOver } from '../harness/services-over.ts';
import { embeddedOnly, engines, failing } from '../harness/stores.ts';

const now = Date.UTC(2030, 0, 1);

const failedLogin: AuditFact = {
  type: 'login.failed',
  actor: null,
  subject: 'usr_01k1jx7v2mh5s8b4c9d0e6f3ga',
  address: '192.0.2.7',
};

function trail(store: Store, options: { waitingMax?: number; clock?: () => number; start?: number } = {}) {
  const seen: Observation[] = [];
  const { clock = () => now } = options;
  const audit = createAudit(
    servicesOver(store, {
      newId: createIdSource(
        () => now + (options.start ?? 0),
        () => 7,
      ),
      clock,
      observe: (fact) => seen.push(fact),
      settings: { auditWaitingMax: options.waitingMax ?? 1000 },
    }),
  );
  return { audit, seen };
}

async function kept(store: Store): Promise<Record<string, unknown>[]> {
  const id = auditCollection.fields.get('id');
  assert.ok(id);
  const plan = store.plan({
    table: auditTable,
    filter: { op: 'always' },
    sort: [{ field: id, direction: 'asc' }],
    limit: 10_000,
  });
  return (await plan.page({ from: 'start' })).docs.map((doc) => JSON.parse(doc));
}

/** Resolves at the first change of the trail that satisfies. */
function whenKept(store: Store, context: TestContext, satisfies: (rows: number) => boolean): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const look = () => {
    kept(store).then((rows) => (satisfies(rows.length) ? resolve() : undefined), reject);
  };
  context.after(store.onChange(auditTable, look));
  look();
  return promise;
}

for (const [engine, open] of engines) {
  test(`${engine}: commits the row of a fact in the unit of what it tells of`, async (context) => {
    const [store, other] = await open(context);
    const { audit } = trail(store);
    const entry = audit.entry({
      type: 'account.roles_changed',
      actor: 'administrator',
      subject: 'usr_01',
      address: '2001:db8::/64',
      detail: { roles: ['editor', 'seller'], before: [], times: 2, forced: true, none: null },
    });
    const commit = await store.commit({ changes: [entry], events: [] });
    assert.equal(commit.outcome, 'committed');
    const [row, ...more] = await kept(other);
    assert.deepEqual(more, []);
    assert.match(String(row?.id), /^aud_[0-9a-z]{26}$/);
    assert.deepEqual(row, {
      id: entry.id,
      type: 'account.roles_changed',
      actor: { kind: 'administrator-key', id: 'administrator' },
      subject: 'usr_01',
      address: '2001:db8::/64',
      detail: { roles: ['editor', 'seller'], before: [], times: 2, forced: true },
      createdAt: '2030-01-01T00:00:00.000Z',
      updatedAt: '2030-01-01T00:00:00.000Z',
    });
  });

  test(`${engine}: notes facts in the background, in order, with the time at which they happened`, async (context) => {
    const [store, other] = await open(context);
    let at = now;
    const { audit, seen } = trail(store, {
      clock: () => {
        at += 1;
        return at;
      },
    });
    for (let fact = 0; fact < 3; fact += 1) audit.note({ ...failedLogin, detail: { fact } });
    assert.equal(audit.waiting(), 3);
    await whenKept(other, context, (rows) => rows === 3);
    const rows = await kept(other);
    assert.deepEqual(
      rows.map(({ detail, createdAt }) => [detail, createdAt]),
      [
        [{ fact: 0 }, '2030-01-01T00:00:00.001Z'],
        [{ fact: 1 }, '2030-01-01T00:00:00.002Z'],
        [{ fact: 2 }, '2030-01-01T00:00:00.003Z'],
      ],
    );
    await audit.close();
    assert.equal(audit.waiting(), 0);
    assert.deepEqual(seen, []);
  });
}

for (const [engine, open] of embeddedOnly) {
  test(`${engine}: finds a fact by its words and by its members`, async (context) => {
    const [store] = await open(context);
    const { audit } = trail(store);
    const facts = [failedLogin, { ...failedLogin, type: 'key.created' } as const];
    await store.commit({ changes: facts.map((fact) => audit.entry(fact)), events: [] });
    const type = auditCollection.fields.get('type');
    assert.ok(type);
    assert.equal(await store.count(auditTable, { op: 'eq', field: type, value: 'key.created' }), 1);
    assert.equal(await store.count(auditTable, { op: 'search', terms: ['192.0.2.7', 'login'] }), 1);
  });

  test(`${engine}: writes what waits when it is closed, more than one unit holds`, async (context) => {
    const [store] = await open(context);
    const { audit, seen } = trail(store, { waitingMax: 5000 });
    for (let fact = 0; fact < 1203; fact += 1) audit.note(failedLogin);
    await audit.close();
    assert.equal((await kept(store)).length, 1203);
    assert.deepEqual(seen, []);
  });

  test(`${engine}: keeps a noted fact once when the store was away, or made the change and lost the answer`, async (context) => {
    const [store] = await open(context);
    for (const fault of ['lost-once', 'answer-lost'] as const) {
      const broken = failing(store);
      broken.fault = fault;
      const { audit, seen } = trail(broken, { start: fault === 'lost-once' ? 0 : 1000 });
      audit.note({ ...failedLogin, detail: { fault } });
      const failed = Promise.withResolvers<void>();
      const { commit } = broken;
      broken.commit = (unit) =>
        commit(unit).catch((error) => {
          broken.fault = 'none';
          failed.resolve();
          throw error;
        });
      await failed.promise;
      await audit.close();
      const rows = (await kept(store)).filter(({ detail }) => (detail as { fault?: string }).fault === fault);
      assert.equal(rows.length, 1, fault);
      assert.deepEqual(
        seen.map((fact) => fact.kind),
        ['store-failed'],
      );
    }
  });
}

const [[, openSqlite] = []] = engines;

test('keeps no more facts waiting than it may, and tells how many are missing', async (context) => {
  assert.ok(openSqlite);
  const [store] = await openSqlite(context);
  const { audit, seen } = trail(store, { waitingMax: 10 });
  for (let fact = 0; fact < 25; fact += 1) audit.note({ ...failedLogin, detail: { fact } });
  assert.equal(audit.waiting(), 10);
  await audit.close();
  assert.deepEqual(
    (await kept(store)).map(({ detail }) => (detail as { fact: number }).fact),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  assert.deepEqual(seen, [{ kind: 'audit-dropped', facts: 15 }]);
});

test('gives up what cannot be written when it is closed, and says how much', async (context) => {
  assert.ok(openSqlite);
  const [store] = await openSqlite(context);
  const broken = failing(store);
  broken.fault = 'lost';
  const { audit, seen } = trail(broken);
  for (let fact = 0; fact < 4; fact += 1) audit.note(failedLogin);
  await audit.close();
  assert.equal(audit.waiting(), 0);
  assert.deepEqual(await kept(store), []);
  assert.deepEqual(seen.at(-1), { kind: 'audit-dropped', facts: 4 });
  audit.note(failedLogin);
  assert.equal(audit.waiting(), 0);
  assert.deepEqual(seen.at(-1), { kind: 'audit-dropped', facts: 1 });
});

test('waits for a store that does not answer no longer than its bound when it is closed', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const asked = Promise.withResolvers<void>();
  const seen: Observation[] = [];
  const commit = () => {
    asked.resolve();
    return new Promise<never>(() => undefined);
  };
  const audit = createAudit(
    servicesOver({ commit }, { clock: () => now, observe: (fact) => seen.push(fact) }),
  );
  audit.note(failedLogin);
  const closed = audit.close();
  await asked.promise;
  context.mock.timers.tick(5000);
  await closed;
  assert.deepEqual(seen, [{ kind: 'audit-dropped', facts: 1 }]);
});

test('goes on after a unit that fails for another reason than the store, and counts what it held', async () => {
  const seen: Observation[] = [];
  const commit = () => Promise.reject(new TypeError('a defect'));
  const audit = createAudit(
    servicesOver({ commit }, { clock: () => now, observe: (fact) => seen.push(fact) }),
  );
  audit.note(failedLogin);
  await audit.close();
  assert.deepEqual(
    seen.map((fact) => fact.kind),
    ['store-failed', 'audit-dropped'],
  );
});

test('writes the words that a search in the collection looks at', () => {
  assert.deepEqual(auditSearchFields, auditCollection.searchFields);
});
