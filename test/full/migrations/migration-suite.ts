/** What `comity migrate` and `comity serve` do with migrations of documents, the same on each store. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import type { Project } from '../../migrations/migrated-project.ts';

export type SuiteOptions = {
  /**
   * `some`: what is read and written. `more`: what that leaves out. A run of `migrate` starts a thread, half a second of a processor: all on
   * PostgreSQL are two files.
   */
  readonly part: 'some' | 'more';
};

const open = `access: { read: 'public', create: 'public', update: 'public', delete: 'public' }`;
const old = `{ collections: { tickets: collection({ ${open}, indexes: ['name'],
  schema: Type.Object({ name: Type.String(), rank: Type.Optional(Type.Integer()) }) }) } }`;

/** @param up the body of the function */
function split(up: string, more = ''): string {
  return `{ collections: { tickets: collection({ ${open}, indexes: ['last'], ${more}
  schema: Type.Object({ first: Type.String(), last: Type.String(), rank: Type.Optional(Type.Integer()) }) }) },
  migrations: [{ id: '2-split-name', collection: 'tickets', up({ name, ...rest }) { ${up} } }] }`;
}
const splitting = split(`const [first, last] = name.split(' '); return { ...rest, first, last };`);
const people = ['Ada Lovelace', 'Alan Turing', 'Grace Hopper'].map((name) => ({ name }));

function pending(engine: string, openProject: () => Project): void {
  test('refuses to serve while a migration is pending, says what to run, and serves once it is made', async () => {
    const project = openProject();
    const [before, after] = [project.configure('before', old), project.configure('after', splitting)];
    await project.seed(before, 'tickets', people);
    const seeded = await project.documents(before, 'tickets');
    const refused = await project.run(after, 'serve');
    assert.equal(refused.code, engine === 'SQLite' ? 5 : 1, refused.stderr);
    if (engine === 'SQLite') {
      assert.equal(
        refused.stderr,
        'comity: tickets: the migration 2-split-name is pending, for 3 documents; run "comity migrate", or start with --migrate\n',
      );
    }
    const checked = await project.run(after, 'check');
    assert.equal(checked.code, 0, checked.stderr);
    assert.match(
      checked.stdout,
      /\n {2}documents in the store\n {4}tickets: the migration 2-split-name is pending, for 3 documents; run "comity migrate"/,
    );
    assert.equal(checked.stderr, '');
    const dry = await project.run(after, 'migrate', '--dry-run');
    assert.equal(dry.code, 3);
    const [first] = seeded;
    assert.match(dry.stdout, /^tickets: 3 of 3 documents do not fit$/m);
    assert.match(dry.stdout, new RegExp(`^  3: /first is required, such as ${first?.id}, `, 'm'));
    assert.match(dry.stdout, /^ {2}migration 2-split-name would change 3$/m);
    assert.deepEqual(await project.documents(before, 'tickets'), seeded);
    const made = await project.run(after, 'migrate', '--yes');
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^tickets: 2-split-name changed 3 of 3 documents {2}\(\d+ ms/m);
    const server = await startServer({
      folder: join(project.folder, 'data'),
      env: { ...project.environment(after), COMITY_DEVELOPMENT: 'off' },
      config: after,
    });
    try {
      const found = await server.send('GET', '/api/v1/tickets?last=Hopper');
      const items = (found.json() as { items: Record<string, unknown>[] }).items;
      const { name: _, ...kept } = seeded[2] ?? {};
      assert.deepEqual(items, [{ ...kept, first: 'Grace', last: 'Hopper' }]);
      const searched = await server.send('GET', '/api/v1/tickets?q=lovelace');
      assert.equal((searched.json() as { items: unknown[] }).items.length, 1);
      const events = await server.send('GET', '/api/v1/events?limit=100');
      const types = (events.json() as { items: { type: string }[] }).items.map(({ type }) => type);
      assert.deepEqual([...new Set(types)], ['tickets.created']);
      const patched = await server.send('PATCH', `/api/v1/tickets/${kept.id}`, { json: { rank: 1 } });
      assert.equal(patched.status, 200);
    } finally {
      await server.stop();
    }
    const again = await project.run(after, 'migrate');
    assert.match(again.stdout, /^Nothing to do: /);
    assert.doesNotMatch((await project.run(after, 'check')).stdout, /documents in the store/);
  });
}

function validators(openProject: () => Project): void {
  test('gives a migrated document a new ETag and the Last-Modified that it had', async () => {
    const project = openProject();
    const [before, after] = [project.configure('before', old), project.configure('after', splitting)];
    await project.seed(before, 'tickets', people);
    const [ticket] = await project.documents(before, 'tickets');
    const path = `/api/v1/tickets/${ticket?.id}`;
    const serving = async <T>(config: string, use: (server: RunningServer) => Promise<T>): Promise<T> => {
      const env = { ...project.environment(config), COMITY_DEVELOPMENT: 'off' };
      const server = await startServer({ folder: join(project.folder, 'data'), env });
      return use(server).finally(() => server.stop());
    };
    const kept = await serving(before, (server) => server.send('GET', path));
    assert.equal((await project.run(after, 'migrate', '--yes')).code, 0);
    await serving(after, async (server) => {
      const { headers } = await server.send('GET', path);
      assert.notEqual(headers.etag, kept.headers.etag);
      assert.equal(headers['last-modified'], kept.headers['last-modified']);
      const etag = String(kept.headers.etag);
      const modified = String(headers['last-modified']);
      const sent = async (method: string, fields: Record<string, string>) =>
        (await server.send(method, path, { headers: fields, json: { rank: 1 } })).status;
      assert.equal((await server.send('GET', path, { headers: { 'If-None-Match': etag } })).status, 200);
      assert.equal(
        (await server.send('GET', path, { headers: { 'If-Modified-Since': modified } })).status,
        304,
      );
      assert.equal(await sent('PATCH', { 'If-Match': etag }), 412);
    });
  });
}

function thrown(openProject: () => Project): void {
  test('tells the document, and the line of what up throws, and leaves everything as it was', async () => {
    const project = openProject();
    const before = project.configure('before', old);
    await project.seed(before, 'tickets', [...people, { name: 'Plato' }]);
    const seeded = await project.documents(before, 'tickets');
    const last = seeded.at(-1)?.id;
    const up = `return { ...rest, first: name, last: name.split(' ')[1].trim() };`;
    const { code, stderr } = await project.run(project.configure('failing', split(up)), 'migrate');
    assert.equal(code, 1, stderr);
    const place = 'failing.mjs:4: Cannot read properties of undefined (reading';
    const start = `comity: the migration stopped at tickets/${last} fails in 2-split-name: `;
    assert.ok(stderr.startsWith(start) && stderr.includes(place), stderr);
    assert.deepEqual(await project.documents(before, 'tickets'), seeded);
  });
}

function endless(openProject: () => Project): void {
  test('ends an up that does not return, and says at which document', async () => {
    const project = openProject();
    const before = project.configure('before', old);
    await project.seed(before, 'tickets', people);
    const [, second] = await project.documents(before, 'tickets');
    const looping = project.configure(
      'looping',
      split(`while (String(name).startsWith('Alan')); return { ...rest, first: '', last: '' };`).replace(
        /\}$/,
        ', settings: { migrationTimeoutMs: 2000 } }',
      ),
    );
    const { code, stderr } = await project.run(looping, 'migrate');
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(
        `stopped at tickets/${second?.id}: up did not return within 2000 ms \\(COMITY_MIGRATION_TIMEOUT_MS\\)`,
      ),
    );
  });
}

function unique(openProject: () => Project): void {
  test('keeps a unique field under its new name, and makes one that only migrated documents fit', async () => {
    const project = openProject();
    const schema = (field: string) => `schema: Type.Object({ ${field}: Type.String(), slug: Type.String() })`;
    const declare = (fields: string, up = '') =>
      `{ collections: { pages: collection({ ${open}, ${fields} }) }, migrations: [${up}] }`;
    const before = project.configure('before', declare(`${schema('name')}, unique: ['name']`));
    await project.seed(
      before,
      'pages',
      ['a', 'b', 'c'].map((name) => ({ name, slug: 'same' })),
    );
    const renamed = `${schema('title')}, unique: ['title', 'slug']`;
    const up = (body: string) => `{ id: 'one', collection: 'pages', up({ name, ...rest }) { ${body} } }`;
    const [first, second] = await project.documents(before, 'pages');
    const same = project.configure(
      'same',
      declare(renamed, up(`return { ...rest, title: 'x', slug: name };`)),
    );
    const taken = await project.run(same, 'migrate', '--yes');
    assert.equal(taken.code, 1);
    assert.match(
      taken.stderr,
      new RegExp(`pages/${second?.id} /title must be unique, and pages/${first?.id} has its value`),
    );
    const after = project.configure(
      'after',
      declare(renamed, up(`return { ...rest, title: name, slug: name };`)),
    );
    const made = await project.run(after, 'migrate', '--yes');
    assert.equal(made.code, 0, made.stderr);
    const server = await startServer({
      folder: join(project.folder, 'data'),
      env: { ...project.environment(after), COMITY_DEVELOPMENT: 'off' },
    });
    try {
      for (const json of [
        { title: 'a', slug: 'new' },
        { title: 'new', slug: 'a' },
      ])
        assert.equal((await server.send('POST', '/api/v1/pages', { json })).status, 409);
    } finally {
      await server.stop();
    }
  });
}

function references(openProject: () => Project): void {
  test('keeps references under their new name, and stops at one that leads nowhere', async () => {
    const project = openProject();
    const boards = `boards: collection({ ${open}, schema: Type.Object({ name: Type.String() }) })`;
    const cards = (field: string, more = '') =>
      `cards: collection({ ${open}, schema: Type.Object({ ${field}: Type.String() })${more} })`;
    const before = project.configure('before', `{ collections: { ${boards}, ${cards('board')} } }`);
    await project.seed(before, 'boards', [{ name: 'one' }]);
    const [board] = await project.documents(before, 'boards');
    await project.seed(before, 'cards', [{ board: board?.id }, { board: 'nowhere' }]);
    const [, lost] = await project.documents(before, 'cards');
    const declare = (up: string) =>
      `{ collections: { ${boards}, ${cards('boardId', `, references: { boardId: { collection: 'boards' } }`)} },
      migrations: [{ id: 'one', collection: 'cards', up({ board, ...rest }) { ${up} } }] }`;
    const dangling = project.configure('dangling', declare('return { ...rest, boardId: board };'));
    const dry = await project.run(dangling, 'migrate', '--dry-run');
    assert.match(
      dry.stdout,
      new RegExp(`  1: /boardId names a document that does not exist in boards, such as ${lost?.id}`),
    );
    const { code, stderr } = await project.run(dangling, 'migrate', '--yes');
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(`cards/${lost?.id} /boardId names a document that does not exist in boards`),
    );
    const mending = declare(`return { ...rest, boardId: board === 'nowhere' ? '${board?.id}' : board };`);
    const after = project.configure('after', mending);
    assert.equal((await project.run(after, 'migrate', '--yes')).code, 0);
    const server = await startServer({
      folder: join(project.folder, 'data'),
      env: { ...project.environment(after), COMITY_DEVELOPMENT: 'off' },
    });
    try {
      const refused = await server.send('DELETE', `/api/v1/boards/${board?.id}`);
      assert.deepEqual([refused.status, (refused.json() as { cardCount: number }).cardCount], [409, 2]);
    } finally {
      await server.stop();
    }
  });
}

function contradictions(openProject: () => Project): void {
  test('tells migrations that are missing, out of order, or before one that was made', async () => {
    const project = openProject();
    const declare = (...ids: readonly string[]) => {
      const migrations = ids.map(
        (id) => `{ id: '${id}', collection: 'tickets', up: (document) => document }`,
      );
      return project.configure(
        ids.join('-') || 'none',
        old.replace(/\}$/, `, migrations: [${migrations}] }`),
      );
    };
    await project.seed(declare(), 'tickets', people);
    assert.equal((await project.run(declare('b', 'c'), 'migrate', '--yes')).code, 0);
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [['b'], /^comity: the migration c of tickets was made \S+ \(comity \S+\), and is not declared/],
      [['c', 'b'], /^comity: the migration c was made after b, and is declared before it: restore the order/],
      [
        ['a', 'b', 'c'],
        /^comity: the migration a is declared before c, which was made already: new migrations go to the end/,
      ],
    ];
    for (const [ids, told] of cases) {
      for (const command of [['serve'], ['migrate', '--yes']]) {
        const { code, stderr } = await project.run(declare(...ids), ...command);
        assert.equal(code, 5, stderr);
        assert.match(stderr, told);
      }
    }
    assert.equal((await project.run(declare('b', 'c', 'd'), 'migrate', '--yes')).code, 0);
  });
}

function additions(openProject: () => Project): void {
  test('serves an additive declaration at once, and looks at documents for any other', async () => {
    const project = openProject();
    const declare = (name: string, schema: string) =>
      project.configure(
        name,
        `{ collections: { tickets: collection({ ${open}, search: ['name'], schema: Type.Object({ ${schema} }) }) } }`,
      );
    const first = declare('first', 'name: Type.String({ maxLength: 20 })');
    await project.seed(first, 'tickets', people);
    const start = async (config: string): Promise<void> => {
      const env = { ...project.environment(config), COMITY_DEVELOPMENT: 'off' };
      await (await startServer({ folder: join(project.folder, 'data'), env })).stop();
    };
    await start(
      declare('added', 'name: Type.String({ maxLength: 30 }), rank: Type.Optional(Type.Integer())'),
    );
    // Not additive, and all of the few documents fit.
    await start(
      declare('narrowed', 'name: Type.String({ maxLength: 12 }), rank: Type.Optional(Type.Integer())'),
    );
    const short = declare(
      'short',
      'name: Type.String({ maxLength: 11 }), rank: Type.Optional(Type.Integer())',
    );
    const { code, stderr } = await project.run(short, 'serve');
    assert.equal(code, 5);
    assert.match(
      stderr,
      /^comity: tickets: documents may not fit its declaration, which has changed \(\/name has the maxLength 11 now\); of 3 documents, 2 do not fit, such as tickets\/\w+: \/name .*; run "comity migrate --dry-run" to see them, and declare a migration\n$/,
    );
    const migrated = await project.run(short, 'migrate', '--yes');
    assert.equal(migrated.code, 5);
    const env = { ...project.environment(short), COMITY_DEVELOPMENT: 'off', COMITY_SERVE_UNMIGRATED: 'on' };
    const server = await startServer({ folder: join(project.folder, 'data'), env });
    await server.stop();
    assert.match(server.stderr(), /documents may not fit its declaration/);
    const bounded = {
      ...project.environment(short),
      COMITY_MIGRATION_LOOK_DOCUMENTS_MAX: '1',
      COMITY_MIGRATION_BATCH_DOCUMENTS_MAX: '1',
    };
    await assert.rejects(
      startServer({ folder: join(project.folder, 'data'), env: { ...bounded, COMITY_DEVELOPMENT: 'off' } }),
      /of the first 1 document/,
    );
  });
}

function withoutDocuments(engine: string, openProject: () => Project): void {
  test('goes on with a collection without documents, and records its migrations', async () => {
    const project = openProject();
    const after = project.configure('after', splitting);
    if (engine === 'PostgreSQL') assert.equal((await project.run(after, 'migrate', '--yes')).code, 0);
    await project.seed(after, 'tickets', [{ first: 'Ada', last: 'Lovelace' }]);
    assert.match((await project.run(after, 'migrate')).stdout, /^Nothing to do/);
    assert.equal((await project.documents(after, 'tickets')).length, 1);
  });
}

function removed(openProject: () => Project): void {
  test('refuses to forget a collection that has documents, until a migration says that it is removed', async () => {
    const project = openProject();
    const notes = `notes: collection({ ${open}, schema: Type.Object({ text: Type.String() }) })`;
    const declare = (name: string, collections: string, migrations = '') =>
      project.configure(name, `{ collections: { ${collections} }, migrations: [${migrations}] }`);
    const both = declare('both', `${notes}, ${notes.replace('notes', 'tasks')}`);
    await project.seed(both, 'notes', [{ text: 'kept' }]);
    const one = declare('one', notes.replace('notes', 'tasks'));
    const { code, stderr } = await project.run(one, 'serve');
    assert.equal(code, 5);
    assert.match(
      stderr,
      /^comity: the collection notes has documents in the store and is no longer declared: declare it again, or/,
    );
    const removed = `{ id: 'no-notes', collection: 'notes', removed: true }`;
    const without = declare('without', notes.replace('notes', 'tasks'), removed);
    await project.seed(without, 'tasks', [{ text: 'more' }]);
    const back = declare(
      'back',
      `${notes}, ${notes.replace('notes', 'tasks')}`,
      `${removed}, { id: 'notes-again', collection: 'notes', up: (note) => note }`,
    );
    assert.equal((await project.run(back, 'migrate', '--yes')).code, 0);
    assert.deepEqual(
      (await project.documents(back, 'notes')).map(({ text }) => text),
      ['kept'],
    );
  });
}

function marked(openProject: () => Project): void {
  test('sets updatedAt and appends events where a migration asks for it, and makes a backup first', async () => {
    const project = openProject();
    const before = project.configure('before', old);
    await project.seed(before, 'tickets', people);
    const seeded = await project.documents(before, 'tickets');
    const after = project.configure(
      'after',
      splitting.replace(`id: '2-split-name',`, `id: '2-split-name', touch: true, events: true,`),
    );
    const file = join(project.folder, 'before.db');
    const made = await project.run(after, 'migrate', '--yes', '--backup', file);
    assert.equal(made.code, 0, made.stderr);
    assert.ok(existsSync(file));
    assert.match(made.stdout, /^tickets: 2-split-name changed 3 of 3 documents/m);
    const migrated = await project.documents(after, 'tickets');
    for (const [index, { updatedAt, createdAt }] of migrated.entries()) {
      assert.equal(createdAt, seeded[index]?.createdAt);
      assert.ok(String(updatedAt) > String(seeded[index]?.updatedAt));
    }
    const events = await project.documents(after, 'events');
    const types = events.map(({ type }) => type).filter((type) => type === 'tickets.updated');
    assert.equal(types.length, 3);
  });
}

export function migrationSuite(engine: string, openProject: () => Project, { part }: SuiteOptions): void {
  describe(engine, () => {
    if (part === 'some') {
      pending(engine, openProject);
      validators(openProject);
      thrown(openProject);
      unique(openProject);
      additions(openProject);
      return;
    }
    endless(openProject);
    references(openProject);
    contradictions(openProject);
    withoutDocuments(engine, openProject);
    removed(openProject);
    marked(openProject);
  });
}
