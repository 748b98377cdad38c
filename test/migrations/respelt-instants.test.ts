/** Documents of a version that kept date-times as they were sent: found, and spelled anew by a start or by `comity migrate`. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfiguration } from '../../src/cli/read-configuration.ts';
import { migrationsTable } from '../../src/migrations/migration-state.ts';
import { openPlainStore } from '../../src/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { startServer } from '../harness/running-server.ts';
import { openProjects, type Project } from './migrated-project.ts';

const source = (rest = '') => `{ collections: { events2: collection({
  schema: Type.Object({ at: Type.String({ format: 'date-time'${rest} }), title: Type.Optional(Type.String({ default: 'x' })),
    more: Type.Optional(Type.Object({ list: Type.Array(Type.String({ format: 'date-time' })) })) }),
  unique: ['at'], access: { read: 'public', create: 'public', update: 'public', delete: 'public' },
  computed: { day: { schema: Type.String(), compute: ({ at }) => at.slice(0, 10) } } }) } }`;
const second = '2026-01-31T12:00:00';
const stored = [
  '2026-02-01T00:30:00+01:00',
  `${second}Z`,
  `${second}.5000Z`,
  '2026-01-31t13:00:00z',
  `${second}.001Z`,
];
const kept = [
  '2026-01-31T23:30:00.000Z',
  `${second}.000Z`,
  `${second}.5000Z`,
  '2026-01-31T13:00:00.000Z',
  `${second}.001Z`,
];

/** Changes what is stored, without validation. */
async function withStore<T>(
  project: Project,
  config: string,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const { configuration, settings } = await readConfiguration(project.environment(config), {});
  const store = await openPlainStore(configuration, settings, () => undefined);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function rewrite(
  store: Store,
  table: string,
  id: string,
  change: (doc: string) => string,
): Promise<number> {
  const row = await store.read(table, id);
  assert.ok(row !== undefined);
  const next = { ...row, doc: change(row.doc), search: null, references: [] };
  const commit = await store.commit({ changes: [{ table, id, expect: { rev: row.rev }, next }], events: [] });
  assert.ok(commit.outcome === 'committed', JSON.stringify(commit));
  return commit.rev;
}

/** Makes the documents and the remembered shape those of a version that kept date-times as they were sent. @returns the ids */
async function prepare(
  project: Project,
  texts: readonly string[],
  config: string,
): Promise<readonly string[]> {
  await project.seed(
    config,
    'events2',
    texts.map((_, index) => ({ at: `2020-01-01T00:00:00.00${index}Z`, more: { list: [kept[0]] } })),
  );
  const ids = (await project.documents(config, 'events2')).map(({ id }) => String(id));
  await withStore(project, config, async (store) => {
    for (const [index, text] of texts.entries()) {
      await rewrite(store, 'events2', ids[index] ?? '', (doc) =>
        doc
          .replace(/2020[^"]*Z/, text)
          .replace(kept[0] ?? '', '2026-02-01T00:30:00+01:00')
          .replace('"title":"x",', ''),
      );
    }
    await rewrite(store, migrationsTable, 'shape.events2', (doc) => {
      const row = JSON.parse(doc) as { shape: Record<string, unknown>; fingerprint: string };
      delete row.shape.instants;
      return JSON.stringify({ ...row, fingerprint: 'of an earlier version' });
    });
  });
  return ids;
}

const isDone = async (project: Project, config: string): Promise<void> => {
  const documents = await project.documents(config, 'events2');
  assert.deepEqual(
    documents.map(({ at }) => at),
    kept,
  );
  for (const { at, day, more, title } of documents) {
    assert.deepEqual([day, more, title], [String(at).slice(0, 10), { list: [kept[0]] }, undefined]);
  }
  const { code, stdout } = await project.run(config, 'migrate', '--dry-run');
  assert.deepEqual([code, /do not fit|date-time/.test(stdout)], [0, false], stdout);
};

for (const [engine, open] of await openProjects()) {
  test(`${engine}: check and a dry run count date-times that are not kept in UTC, and migrate keeps them so, without events`, async () => {
    const project = open();
    const config = project.configure('instants', source(', maxLength: 30'));
    const ids = await prepare(project, stored, config);
    const sentence = `events2: documents may not fit its declaration, which has changed (date-times are kept in UTC now); of 5 documents, 5 do not fit, such as events2/${ids[0]}: /at is a date-time that is not kept in UTC yet; run "comity migrate", which keeps their date-times in UTC, or start with --migrate\n`;
    assert.ok((await project.run(config, 'check')).stdout.includes(sentence));
    const previewed = await project.run(config, 'migrate', '--dry-run');
    assert.equal(previewed.code, 3, previewed.stdout);
    assert.match(
      previewed.stdout,
      /5 of 5 documents do not fit\n {2}3: \/at is a date-time that is not kept in UTC yet/,
    );
    assert.match(previewed.stdout, /\n {2}date-times would be kept in UTC in 5 documents\n/);
    assert.equal((await project.documents(config, 'events2'))[0]?.at, stored[0]);
    const before = await withStore(project, config, async (store) => [
      await store.count('events', { op: 'always' }),
      (await store.read('events2', ids[1] ?? ''))?.updatedAt,
    ]);
    const env = { COMITY_MIGRATION_BATCH_DOCUMENTS_MAX: '2' };
    Object.assign(process.env, env);
    const made = await project.run(config, 'migrate', '--yes');
    delete process.env.COMITY_MIGRATION_BATCH_DOCUMENTS_MAX;
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /events2: date-times of 5 documents are kept in UTC now {2}\(/);
    await isDone(project, config);
    const after = await withStore(project, config, async (store) => [
      await store.count('events', { op: 'always' }),
      (await store.read('events2', ids[1] ?? ''))?.updatedAt,
    ]);
    assert.deepEqual(after, before);
    assert.equal((await project.run(config, 'check')).code, 0);
  });

  test(`${engine}: a start of the embedded store keeps them so by itself; one on PostgreSQL is told to`, async () => {
    const project = open();
    const config = project.configure('instants', source());
    await prepare(project, stored, config);
    const env = { ...project.environment(config), COMITY_DEVELOPMENT: 'off' };
    if (engine !== 'SQLite') {
      const refused = await project.run(config, 'serve');
      assert.equal(refused.code, 5);
      assert.match(refused.stderr, /which keeps their date-times in UTC, or start with --migrate/);
    }
    const told = engine === 'SQLite' ? {} : { COMITY_MIGRATE_AT_START: 'on' };
    const program = await startServer({ config, env: { ...env, ...told } });
    const found = await program.send('GET', `/api/v1/events2?at=${second}Z&fields=at`);
    assert.deepEqual(found.json().items, [{ at: `${second}.000Z` }], found.body);
    await program.stop();
    await isDone(project, config);
  });

  test(`${engine}: names the documents whose date-times are one instant in a unique field`, async () => {
    const project = open();
    const config = project.configure('instants', source());
    const ids = await prepare(project, [`${second}.000Z`, `${second}Z`], config);
    const { code, stderr } = await project.run(config, 'migrate', '--yes');
    assert.equal(code, 5, stderr);
    assert.doesNotMatch(stderr, /correct the migration/);
    assert.match(
      stderr,
      /; correct it with a server of the earlier declaration \(on PostgreSQL after "comity migrate" with that\), or declare a migration\n$/,
    );
    assert.ok(
      stderr.includes(`events2/${ids[1]} /at must be unique, and events2/${ids[0]} has its value`) ||
        stderr.includes(`events2/${ids[0]} /at must be unique, and events2/${ids[1]} has its value`),
      stderr,
    );
    const earlier = project.configure('earlier', source().replaceAll(`{ format: 'date-time' }`, ''));
    if (engine !== 'SQLite') assert.equal((await project.run(earlier, 'migrate', '--yes')).code, 0);
    const env = { ...project.environment(earlier), COMITY_DEVELOPMENT: 'off' };
    const server = await startServer({ folder: join(project.folder, 'data'), env });
    const changed = await server.send('PATCH', `/api/v1/events2/${ids[1]}`, { json: { at: `${second}.7Z` } });
    assert.equal(changed.status, 200, changed.body);
    await server.stop();
    assert.equal((await project.run(config, 'migrate', '--yes')).code, 0);
  });

  test(`${engine}: leaves what is no instant, and says so`, async () => {
    const project = open();
    const config = project.configure('instants', source());
    const [id] = await prepare(project, ['2026-12-31T23:59:60Z', `${second}Z`], config);
    const { code, stderr } = await project.run(config, 'migrate', '--yes');
    assert.equal(code, 5, stderr);
    assert.match(stderr, new RegExp(`such as events2.${id}: /at must be an RFC 3339 date and time`));
  });
  test(`${engine}: names first what needs a migration where text becomes a date-time`, async () => {
    const project = open();
    const declared = (format: string, rest = '') =>
      `{ collections: { a: collection({ schema: Type.Object({ at: Type.String(${format}) }), ${rest} }) } }`;
    const bad = '2026-01-31 12:00';
    await project.seed(
      project.configure('text', declared('')),
      'a',
      ['2026-01-31T13:00:00+01:00', '2026-01-31T12:00:00Z', bad].map((at) => ({ at })),
    );
    const config = project.configure('instant', declared(`{ format: 'date-time' }`));
    const ids = (await project.documents(config, 'a')).map(({ id }) => id);
    const [id] = (await project.documents(config, 'a')).filter(({ at }) => at === bad).map((each) => each.id);
    const sentence = `of 3 documents, 3 do not fit, 1 of which needs a migration, such as a/${id}: /at must be `;
    const checked = await project.run(config, 'check');
    assert.deepEqual([checked.code, checked.stdout.includes(sentence)], [0, true], checked.stdout);
    for (const command of ['serve', 'migrate']) {
      const { code, stderr } = await project.run(config, command);
      assert.deepEqual([code, stderr.includes(sentence)], [5, true], stderr);
    }
    const { stdout } = await project.run(config, 'migrate', '--dry-run');
    assert.match(
      stdout,
      new RegExp(`do not fit\n {2}1: /at must be .*, such as ${id}\n {2}2: /at is a date-time`),
    );

    const instants = project.configure('unique', declared(`{ format: 'date-time' }`, `unique: ['at']`));
    await withStore(project, config, (store) =>
      rewrite(store, 'a', String(id), (doc) => doc.replace(bad, '2026-01-31T14:00:00Z')),
    );
    const { code, stderr } = await project.run(instants, 'migrate', '--yes');
    assert.equal(code, 5, stderr);
    const others = ids.filter((each) => each !== id);
    assert.ok(
      others.every((each) => stderr.includes(String(each))),
      stderr,
    );
  });
}
