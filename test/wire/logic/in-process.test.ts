/** Comity within another program, on both stores: `fetch` without a socket, and typed calls with the rights of a principal. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type Comity,
  type ConfigurationError,
  collection,
  createComity,
  defineConfig,
  ResourceRefused,
  Type,
} from 'comity';
import { resolveConfiguration } from '../../../src/config/configuration.ts';
import type { ResourcesIn } from '../../../src/config/define.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { databaseWith } from '../../harness/postgres-database.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const collections = {
  notes: collection({
    schema: Type.Object({ text: Type.String({ minLength: 1 }), secret: Type.Optional(Type.String()) }),
    access: { read: 'owner', create: 'principal', update: 'owner', delete: 'owner' },
    hidden: { secret: 'administrator' },
  }),
  pages: collection({
    schema: Type.Object({ title: Type.String() }),
    access: { read: 'public' },
    putCreates: true,
    requireMatch: true,
  }),
  greetings: collection({
    schema: Type.Object({ to: Type.String(), email: Type.Optional(Type.String()) }),
    hooks: {
      async beforeWrite({ after: greeting, resources, refuse }) {
        const [account] = await resources.users.list({ filter: { email: greeting.to } });
        const read = account === undefined ? undefined : await resources.users.get(account.id);
        if (read === undefined) return refuse({ code: 'nobody_to_greet' });
        greeting.email = `${read.name} ${Object.hasOwn(read, 'password')}`;
      },
    },
  }),
};
const declaration = defineConfig({ collections });
const adminKey = 'sk_the_key_of_the_administrator';

test('mistakes of the declaration and of its settings are told together', async () => {
  const wrong = { collections: {}, colections: {}, settings: { hookTimeoutMs: -5 } } as never;
  await assert.rejects(createComity(wrong, { COMITY_LOG_LEVEL: 'loud' }), (error: Error) => {
    const { mistakes } = error as ConfigurationError;
    const subjects = mistakes.map((mistake) => mistake.split(' ', 1)[0]);
    assert.deepEqual(subjects, ['"colections"', 'COMITY_LOG_LEVEL', 'settings.hookTimeoutMs']);
    return true;
  });
});

for (const engine of engineNames) {
  describe(`in process on ${engine}`, () => {
    let comity: Comity<ResourcesIn<typeof collections>>;
    const ada = { id: 'usr_ada', roles: ['author'] };
    const bob = { id: 'usr_bob' };

    before(async () => {
      const environment: Record<string, string> = {
        COMITY_ADMIN_KEY: adminKey,
        COMITY_DATA: temporaryFolder(),
        COMITY_LOG_LEVEL: 'error',
      };
      if (engine === 'PostgreSQL') {
        const database = await databaseWith(storeTables(resolveConfiguration(declaration)));
        environment.COMITY_DATABASE_URL = database.url;
        after(() => database.dispose());
      }
      comity = await createComity(declaration, environment);
    });

    after(() => comity.close());

    const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
      comity.fetch(new Request(`http://api.example${path}`, { headers }));

    test('refuses what is no principal, and names a collection that is none', async () => {
      const as = comity.resources.as as (principal: unknown) => unknown;
      for (const [principal, sentence] of [
        ['admin', /a principal must be an account, or .*; not a string/],
        [{}, /its id is undefined/],
        [undefined, /; not undefined/],
        [{ id: 'usr_ada', roles: 'author' }, /roles of a principal must be a list of strings/],
        [{ id: 'usr_ada', scopes: ['admn'] }, /"admn" is not a scope.*did you mean admin/],
      ] as const) {
        assert.throws(() => as(principal), { name: 'TypeError', message: sentence });
      }
      const calls = comity.resources as unknown as Record<string, { list(): Promise<unknown> }>;
      await assert.rejects(async () => calls.tikets?.list(), {
        code: 'not_found',
        message: 'no collection is named "tikets"',
      });
    });

    test('answers a request like one over a socket', async () => {
      const put = await comity.fetch(
        new Request('http://api.example/api/v1/pages/home', {
          method: 'PUT',
          headers: { 'X-API-Key': adminKey, 'Content-Type': 'application/json' },
          body: '{"title":"Home — é"}',
        }),
      );
      assert.equal(put.status, 201);
      const page = (await put.json()) as { title: string };
      assert.equal(page.title, 'Home — é');
      const read = await get('/api/v1/pages/home');
      assert.equal(read.status, 200);
      const text = await read.text();
      assert.equal(read.headers.get('Content-Length'), String(Buffer.byteLength(text)));
      assert.equal(read.headers.get('API-Version'), '1');
      assert.ok(read.headers.get('Date'));
      const etag = String(read.headers.get('ETag'));
      const same = await get('/api/v1/pages/home', { 'If-None-Match': etag });
      assert.deepEqual([same.status, await same.text()], [304, '']);
      const head = await comity.fetch(
        new Request('http://api.example/api/v1/pages/home', { method: 'HEAD' }),
      );
      assert.deepEqual([head.status, await head.text()], [200, '']);
      assert.equal((await get('/api/v1/nothing')).status, 404);
      assert.equal((await get('/api/v1/notes')).status, 401);
      assert.equal((await get('/api/v1/realtime', { Upgrade: 'websocket' })).status >= 400, true);
    });

    test('streams content in both directions', async () => {
      const controller = new AbortController();
      const events = await comity.fetch(
        new Request('http://api.example/api/v1/events', {
          headers: { Accept: 'text/event-stream', 'X-API-Key': adminKey },
          signal: controller.signal,
        }),
      );
      assert.equal(events.status, 200);
      const reader = (events.body ?? assert.fail()).pipeThrough(new TextDecoderStream()).getReader();
      const pieces = ['{"text":"in ', 'pieces"}'].map((piece) => new TextEncoder().encode(piece));
      const made = await comity.fetch(
        new Request('http://api.example/api/v1/notes', {
          method: 'POST',
          headers: { 'X-API-Key': adminKey, 'Content-Type': 'application/json' },
          body: ReadableStream.from(pieces),
          duplex: 'half',
        }),
      );
      assert.equal(made.status, 201);
      let seen = '';
      while (!seen.includes('in pieces')) seen += (await reader.read()).value;
      assert.match(seen, /event: notes\.created/);
      controller.abort(new Error('enough'));
      await assert.rejects(async () => {
        while (!(await reader.read()).done);
        throw new Error('the stream ended');
      });
    });

    test('rejects a request whose signal is aborted', async () => {
      const controller = new AbortController();
      const url = 'http://api.example/api/v1/notes';
      const { signal } = controller;
      const body = new ReadableStream();
      const headers = { 'X-API-Key': adminKey, 'Content-Type': 'application/json' };
      const waiting = comity.fetch(
        new Request(url, { method: 'POST', headers, body, duplex: 'half', signal }),
      );
      controller.abort(new Error('not any more'));
      await assert.rejects(waiting, /not any more/);
      await assert.rejects(comity.fetch(new Request(url, { signal })), /not any more/);
    });

    test('refuses content that is too long', async () => {
      const chunk = new Uint8Array(1024 * 1024);
      async function* endless() {
        for (;;) yield chunk;
      }
      const refused = await comity.fetch(
        new Request('http://api.example/api/v1/notes', {
          method: 'POST',
          headers: { 'X-API-Key': adminKey, 'Content-Type': 'application/json' },
          body: ReadableStream.from(endless()),
          duplex: 'half',
        }),
      );
      assert.equal(refused.status, 413);
    });

    test('calls the collections with the rights of a principal', async () => {
      const own = comity.resources.as(ada);
      const note = await own.notes.create({ text: 'mine', secret: 'not mine' }).catch((error) => error);
      assert.ok(note instanceof ResourceRefused || !Object.hasOwn(note, 'secret'));
      const made = await own.notes.create({ text: 'mine' });
      assert.deepEqual(await own.notes.get(made.id), made);
      assert.deepEqual(
        (await own.notes.list({ filter: { text: 'mine' } })).map(({ id }) => id).includes(made.id),
        true,
      );
      const others = comity.resources.as(bob).notes;
      assert.equal(await others.get(made.id), undefined);
      assert.deepEqual(await others.list(), []);
      await assert.rejects(others.update(made.id, { text: 'x' }), { code: 'not_found', status: 404 });
      await assert.rejects(others.delete(made.id), { code: 'not_found', status: 404 });
      await assert.rejects(comity.resources.as(null).notes.create({ text: 'x' }), { status: 401 });
      await assert.rejects(comity.resources.as({ ...bob, scopes: ['read'] }).notes.create({ text: 'x' }), {
        status: 403,
      });
      await assert.rejects(others.create({ text: 'x' }, { owner: ada.id }), { code: 'forbidden' });
      await assert.rejects(own.notes.create({ text: '' }), { code: 'validation_failed', status: 422 });
      assert.equal((await own.notes.update(made.id, { text: 'changed' })).text, 'changed');
      assert.equal((await own.notes.replace(made.id, { text: 'replaced' })).text, 'replaced');
      await own.notes.delete(made.id);
      assert.equal(await own.notes.get(made.id), undefined);
    });

    test('calls them as an administrator, who may create for others', async () => {
      const { notes, pages } = comity.resources;
      const made = await notes.create({ text: 'for ada', secret: 'x' }, { owner: ada.id });
      assert.equal((await notes.get(made.id))?.secret, 'x');
      const seen = await comity.resources.as(ada).notes.get(made.id);
      assert.deepEqual([seen?.text, seen === undefined || 'secret' in seen], ['for ada', false]);
      await pages.create({ title: 'About' }, { id: 'about' });
      await assert.rejects(pages.create({ title: 'About' }, { id: 'about' }), {
        code: 'precondition_failed',
      });
      assert.equal((await pages.update('about', { title: 'Us' })).title, 'Us');
      await pages.delete('about');
      assert.equal(await pages.get('..'), undefined);
      const unknown = comity.resources as unknown as Record<string, typeof pages>;
      await assert.rejects(async () => unknown.pagse?.get('x'), /no collection/);
    });

    test('let functions read accounts, and not write them', async () => {
      const post = (body: unknown): Promise<Response> =>
        comity.fetch(
          new Request('http://api.example/api/v1/users', {
            method: 'POST',
            headers: { 'X-API-Key': adminKey, 'Content-Type': 'application/json' },
            body: JSON.stringify(body),
          }),
        );
      const made = await post({ email: 'ada@example.com', name: 'Ada' });
      assert.equal(made.status, 201);
      assert.equal((await comity.resources.users.list({ filter: { email: 'ada@example.com' } })).length, 1);
      const greeting = await comity.resources.greetings.create({ to: 'ada@example.com' });
      assert.equal(greeting.email, 'Ada false');
      await assert.rejects(comity.resources.greetings.create({ to: 'eve@example.com' }), {
        code: 'nobody_to_greet',
      });
    });
  });
}
