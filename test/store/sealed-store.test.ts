/** Secrets at rest: they are encrypted in either store, and the keys that open it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { rotateSecretKey, sealStore } from '../../src/store/secrets/sealed-store.ts';
import {
  keyRowId,
  type SealOptions,
  type SecretKey,
  secretKeyOf,
} from '../../src/store/secrets/secret-key-ring.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { keptRow, type Store, type Table } from '../../src/store/store.ts';
import { engineNames } from '../harness/engine-names.ts';
import { databaseWith } from '../harness/postgres-database.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const secret = 'whsec_4f1c9d2e';
const plain: Table = { name: '', fields: [], indexes: [], unique: [], references: [], searched: false };
const tables = ['tokens', 'others', 'notes'].map((name) => ({ ...plain, name }));
const [one, two] = [1, 2].map((octet) => secretKeyOf(Buffer.alloc(32, octet))) as [SecretKey, SecretKey];

type Place = { readonly open: () => Promise<Store>; readonly options: SealOptions };

async function place(engine: 'SQLite' | 'PostgreSQL', given: readonly SecretKey[]): Promise<Place> {
  const folder = temporaryFolder();
  const database = engine === 'PostgreSQL' ? await databaseWith(tables) : undefined;
  if (database !== undefined) after(() => database.dispose());
  const data = join(folder, 'data');
  return {
    open: () =>
      database === undefined
        ? openSqliteStore({ folder: data, tables })
        : openPostgresStore({ url: database.url, tables }),
    options: {
      tables: new Map([
        ['tokens', new Set(['plain', keyRowId])],
        ['others', new Set()],
      ]),
      ...{ keyTable: 'tokens', given, file: join(data, 'secret.key') },
      ...{ random: randomBytes, clock: Date.now, observe: () => undefined },
    },
  };
}

async function put(store: Store, table: string, id: string, doc: string): Promise<void> {
  const current = await store.read(table, id);
  const expect = current === undefined ? ({ absent: true } as const) : { rev: current.rev };
  const next = keptRow(doc, 'usr_1', 5, 6);
  const { outcome } = await store.commit({ changes: [{ table, id, expect, next }], events: [] });
  assert.equal(outcome, 'committed');
}

async function withStore<T>({ open }: Pick<Place, 'open'>, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await open();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const sealed = ({ open, options }: Place, given = options.given): Pick<Place, 'open'> => ({
  open: async () => {
    const store = await open();
    return sealStore(store, { ...options, given }).catch(async (error: unknown) => {
      await store.close();
      throw error;
    });
  },
});

const docOf = async (store: Store, table: string, id: string): Promise<string | undefined> =>
  (await store.read(table, id))?.doc;

for (const engine of engineNames) {
  describe(`secrets at rest on ${engine}`, () => {
    test('a secret is stored encrypted with the id of its key, and read as it was written', async () => {
      const at = await place(engine, [one]);
      await withStore(sealed(at), async (store) => {
        for (const table of ['tokens', 'notes']) await put(store, table, 'a', secret);
        await put(store, 'tokens', 'plain', secret);
        assert.equal(await docOf(store, 'tokens', 'a'), secret);
        const row = await store.read('tokens', 'a');
        assert.deepEqual([row?.owner, row?.createdAt, row?.updatedAt], ['usr_1', 5, 6]);
        const stale = { table: 'tokens', id: 'a', expect: { absent: true } as const, next: null };
        const commit = await store.commit({ changes: [stale], events: [] });
        assert.ok(commit.outcome === 'superseded' && commit.current?.doc === secret);
      });
      await withStore(at, async (store) => {
        const stored = await docOf(store, 'tokens', 'a');
        assert.ok(stored?.startsWith(`{"sealed":{"key":"${one.id}"`) && !stored.includes(secret));
        for (const [table, id] of [['tokens', 'plain'] as const, ['notes', 'a'] as const]) {
          assert.equal(await docOf(store, table, id), secret);
        }
      });
    });

    test('the same secret twice has two ciphertexts, and one in the place of another is refused', async () => {
      const at = await place(engine, [one]);
      await withStore(sealed(at), async (store) => {
        for (const id of ['a', 'b']) await put(store, 'tokens', id, secret);
      });
      const moved = await withStore(at, async (store) => {
        const [a, b] = [await docOf(store, 'tokens', 'a'), await docOf(store, 'tokens', 'b')];
        assert.notEqual(a, b);
        await put(store, 'tokens', 'b', String(a));
        await put(store, 'others', 'a', String(a));
        return a;
      });
      await withStore(sealed(at), async (store) => {
        assert.equal(await docOf(store, 'tokens', 'a'), secret);
        await assert.rejects(
          async () => store.read('tokens', 'b'),
          /tokens\/b does not decrypt .* changed or moved/,
        );
        await assert.rejects(async () => store.read('others', 'a'), /others\/a does not decrypt/);
      });
      await withStore(at, (store) =>
        put(store, 'tokens', 'a', String(moved).replace(/.{8}"}}$/, 'AAAAAAA="}}')),
      );
      await withStore(sealed(at), async (store) => {
        await assert.rejects(async () => store.read('tokens', 'a'), /does not decrypt/);
      });
    });

    test('what was stored plain is encrypted by the next start', async () => {
      const at = await place(engine, [one]);
      const ids = Array.from({ length: 300 }, (_, index) => `t${index}`);
      await withStore(at, async (store) => {
        await Promise.all(ids.map((id) => put(store, 'tokens', id, `${secret} ${id}`)));
      });
      await withStore(sealed(at), async (store) => {
        for (const id of ids) assert.equal(await docOf(store, 'tokens', id), `${secret} ${id}`);
      });
      await withStore(at, async (store) => {
        for (const id of ids) assert.doesNotMatch(String(await docOf(store, 'tokens', id)), /whsec/);
      });
    });

    test('another key is refused with words, and nothing is changed by it', async () => {
      const at = await place(engine, [one]);
      await withStore(sealed(at), (store) => put(store, 'tokens', 'a', secret));
      await assert.rejects(
        withStore(sealed(at, [two]), async () => undefined),
        new RegExp(
          `encrypted with the key ${one.id}, and COMITY_SECRET_KEY is the key ${two.id}: .*_PREVIOUS`,
        ),
      );
      await assert.rejects(
        withStore(sealed(at, []), async () => undefined),
        new RegExp(`encrypted with the key ${one.id}, which this process does not have: .*secret\\.key$`),
      );
      assert.ok(!existsSync(at.options.file));
      await withStore(sealed(at), async (store) => assert.equal(await docOf(store, 'tokens', 'a'), secret));
    });

    test('without a key a file of mode 0600 is made, and a setting takes its place', async () => {
      const at = await place(engine, []);
      await withStore(sealed(at), (store) => put(store, 'tokens', 'a', secret));
      const { file } = at.options;
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const written = readFileSync(file, 'utf8');
      await withStore(sealed(at), async (store) => assert.equal(await docOf(store, 'tokens', 'a'), secret));
      assert.equal(readFileSync(file, 'utf8'), written);
      const given = { ...at, options: { ...at.options, given: [two] } };
      await withStore(at, (store) =>
        rotateSecretKey(store, { ...given.options, settleMs: 0, onSealed: () => undefined }),
      );
      rmSync(file);
      await withStore(sealed(given), async (store) =>
        assert.equal(await docOf(store, 'tokens', 'a'), secret),
      );
      assert.ok(!existsSync(file));
    });

    test('a rotation encrypts everything anew, also one that goes on after an interruption', async () => {
      const at = await place(engine, [one]);
      const ids = Array.from({ length: 20 }, (_, index) => `t${index}`);
      await withStore(sealed(at), async (store) => {
        for (const id of ids) await put(store, 'tokens', id, secret);
      });
      const both = { ...at.options, given: [two, one], settleMs: 0, onSealed: () => undefined };
      await withStore(at, async (store) => {
        let commits = 0;
        const failing: Store = {
          ...store,
          commit: (unit) => {
            commits += 1;
            return commits > 8 ? Promise.reject(new Error('interrupted')) : store.commit(unit);
          },
        };
        await assert.rejects(rotateSecretKey(failing, both), /interrupted/);
      });
      await withStore(at, async (store) => {
        const { key, rows } = await rotateSecretKey(store, both);
        assert.ok(key === two.id && rows > 0 && rows < ids.length);
        assert.deepEqual(await rotateSecretKey(store, both), { key: two.id, rows: 0 });
      });
      await withStore(sealed(at, [two]), async (store) => {
        for (const id of ids) assert.equal(await docOf(store, 'tokens', id), secret);
      });
    });

    test('a rotation of the key file leaves the new key alone in it', async () => {
      const at = await place(engine, []);
      await withStore(sealed(at), (store) => put(store, 'tokens', 'a', secret));
      const { file } = at.options;
      const keys = (): readonly string[] => readFileSync(file, 'utf8').match(/^[^#\n]+$/gm) ?? [];
      const before = keys();
      await withStore(at, (store) =>
        rotateSecretKey(store, { ...at.options, settleMs: 0, onSealed: () => undefined }),
      );
      assert.ok(before.length === 1 && keys().length === 1 && keys()[0] !== before[0]);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      await withStore(sealed(at), async (store) => assert.equal(await docOf(store, 'tokens', 'a'), secret));
    });
  });
}

test('processes on one database read each other while they are given another key one after the other', async () => {
  const at = await place('PostgreSQL', [one]);
  const old = await sealed(at).open();
  const next = await sealed(at, [two, one]).open();
  await put(old, 'tokens', 'a', 'from the old');
  await put(next, 'tokens', 'b', 'from the new');
  assert.equal(await docOf(next, 'tokens', 'a'), 'from the old');
  // The new key encrypts nothing before a rotation names it.
  assert.equal(await docOf(old, 'tokens', 'b'), 'from the new');
  await old.close();
  const told = new Promise<void>((resolve) => void next.onChange('tokens', resolve));
  await withStore(at, (store) =>
    rotateSecretKey(store, { ...at.options, given: [two, one], settleMs: 100, onSealed: () => undefined }),
  );
  await told;
  assert.equal(await docOf(next, 'tokens', 'a'), 'from the old');
  await next.close();
  await withStore(sealed(at, [two]), async (store) => {
    assert.equal(await docOf(store, 'tokens', 'b'), 'from the new');
  });
});

test('the embedded store changes its key at the start that is given another', async () => {
  const at = await place('SQLite', [one]);
  await withStore(sealed(at), (store) => put(store, 'tokens', 'a', secret));
  await withStore(sealed(at, [two, one]), async () => undefined);
  await withStore(sealed(at, [two]), async (store) =>
    assert.equal(await docOf(store, 'tokens', 'a'), secret),
  );
});

test('of processes that start together on one database with no key between them, one is refused', async () => {
  const at = await place('PostgreSQL', []);
  const elsewhere = temporaryFolder();
  const same = await Promise.all([sealed(at).open(), sealed(at).open()]);
  await put(same[0], 'tokens', 'a', secret);
  assert.equal(await docOf(same[1], 'tokens', 'a'), secret);
  const stranger = { ...at, options: { ...at.options, file: join(elsewhere, 'secret.key') } };
  await assert.rejects(sealed(stranger).open(), /which this process does not have: set COMITY_SECRET_KEY/);
  for (const store of same) await store.close();
});

test('a key file that holds no key is refused, and not replaced', async () => {
  const at = await place('SQLite', []);
  await withStore(sealed(at), async () => undefined);
  writeFileSync(at.options.file, 'gone\n');
  await assert.rejects(sealed(at).open(), /the key file .* holds no valid key: restore your copy/);
  assert.equal(readFileSync(at.options.file, 'utf8'), 'gone\n');
  chmodSync(at.options.file, 0o600);
});
