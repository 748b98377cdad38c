/** Fields of accounts migrate like documents of a collection, and documents that are softly deleted stay as they are; on each store. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { openProjects, type Project } from '../../migrations/migrated-project.ts';

const open = `access: { read: 'public', create: 'public', update: 'public', delete: 'public' }`;
const collections = `collections: { notes: collection({ ${open}, softDelete: true, schema: Type.Object({ text: Type.String() }) }) }`;
const accounts = (field: string, more = ''): string =>
  `{ ${collections}, accounts: { readOnly: { ${field}: 'owner' }, fields: Type.Object({ ${field}: Type.String() }) } ${more} }`;
const email = 'ada@example.com';
const password = 'correct horse battery staple';

function serve(project: Project, config: string): Promise<RunningServer> {
  const env = { ...project.environment(config), COMITY_DEVELOPMENT: 'off' };
  return startServer({ folder: join(project.folder, 'data'), env });
}

async function serving<T>(
  project: Project,
  config: string,
  use: (server: RunningServer) => Promise<T>,
): Promise<T> {
  const server = await serve(project, config);
  return use(server).finally(() => server.stop());
}

/** Registers an account with a team. @returns its id */
function register(project: Project, config: string): Promise<string> {
  return serving(project, config, async (server) => {
    const json = { email, password, team: 'north/2' };
    const answer = await server.send('POST', '/api/v1/auth/register', { json, anonymous: true });
    assert.equal(answer.status, 201, answer.body);
    return (answer.json().user as { id: string }).id;
  });
}

for (const [engine, openProject] of await openProjects()) {
  describe(engine, () => {
    test('fields of accounts are judged at a start, counted, and migrated; the account logs in as before', async () => {
      const project = openProject();
      const before = project.configure('before', accounts('team'));
      const id = await register(project, before);
      const up = `up: ({ team, ...rest }) => ({ ...rest, squad: team.split('/')[0] })`;
      const undeclared = await project.run(project.configure('undeclared', accounts('squad')), 'serve');
      assert.equal(undeclared.code, 5, undeclared.stderr);
      assert.match(undeclared.stderr, /users: documents may not fit .*of 1 document, 1 do not fit/);
      const after = project.configure(
        'after',
        accounts('squad', `, migrations: [{ id: '2-squad', collection: 'users', ${up} }]`),
      );
      const dry = await project.run(after, 'migrate', '--dry-run');
      assert.equal(dry.code, 3, dry.stdout);
      assert.match(
        dry.stdout,
        new RegExp(`^users: 1 of 1 documents do not fit\n {2}1: /squad is required, such as ${id}$`, 'm'),
      );
      const made = await project.run(after, 'migrate', '--yes');
      assert.equal(made.code, 0, made.stderr);
      assert.match(made.stdout, /^users: 2-squad changed 1 of 1 documents/m);
      await serving(project, after, async (server) => {
        const login = await server.send('POST', '/api/v1/auth/login', {
          json: { email, password },
          anonymous: true,
        });
        assert.equal(login.status, 200, login.body);
        const user = (await server.send('GET', `/api/v1/users/${id}`)).json();
        assert.equal(user.squad, 'north');
        assert.equal(user.team, undefined);
        assert.equal(user.email, email);
        const changed = await server.send('PATCH', `/api/v1/users/${id}`, { json: { squad: 'south' } });
        assert.equal(changed.status, 200, changed.body);
      });
      const gone = project.configure(
        'gone',
        `{ ${collections}, migrations: [{ id: '2-squad', collection: 'users', ${up} }] }`,
      );
      const refused = await project.run(gone, 'serve');
      assert.equal(refused.code, 5, refused.stderr);
      assert.match(refused.stderr, /users: documents may not fit .*: \/squad unknown property/);
    });

    test('documents that are softly deleted stay as they are, and PUT creates them anew in the new shape', async () => {
      const project = openProject();
      const soft = (schema: string, more = ''): string =>
        `{ collections: { notes: collection({ ${open}, putCreates: true, softDelete: true, schema: Type.Object({ ${schema} }) }) } ${more} }`;
      const before = project.configure('before', soft('text: Type.String()'));
      await serving(project, before, async (server) => {
        for (const id of ['kept', 'deleted']) {
          const put = await server.send('PUT', `/api/v1/notes/${id}`, { json: { text: id } });
          assert.equal(put.status, 201);
        }
        assert.equal((await server.send('DELETE', '/api/v1/notes/deleted')).status, 204);
      });
      const after = project.configure(
        'after',
        soft(
          'words: Type.String()',
          `, migrations: [{ id: '2-words', collection: 'notes', up({ text, ...rest }) {
            if (text === 'deleted') throw new Error('it is deleted');
            return { ...rest, words: text }; } }]`,
        ),
      );
      const dry = await project.run(after, 'migrate', '--dry-run');
      assert.match(dry.stdout, /^notes: 1 of 1 documents do not fit$/m);
      const made = await project.run(after, 'migrate', '--yes');
      assert.equal(made.code, 0, made.stderr);
      assert.match(made.stdout, /^notes: 2-words changed 1 of 1 documents/m);
      await serving(project, after, async (server) => {
        assert.equal((await server.send('GET', '/api/v1/notes/kept')).json().words, 'kept');
        assert.equal((await server.send('GET', '/api/v1/notes/deleted')).status, 404);
        const again = await server.send('PUT', '/api/v1/notes/deleted', { json: { words: 'new' } });
        assert.equal(again.status, 201, again.body);
      });
    });
  });
}
