/**
 * What leaves a reader's sight (§6.10): streams and WebSockets say that a document left, to those alone who could read it; the log shows no
 * text that its reader may no longer read, in lists, single events, resumed streams and sockets that catch up.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import WebSocket from 'ws';
import {
  asAdministrator,
  base,
  bearer,
  type Client,
  openClient,
  register,
} from '../../harness/account-client.ts';
import { engineNames } from '../../harness/engine-names.ts';
import { createFollowers, type Heard } from '../../harness/event-followers.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../fixtures/leaving.config.ts', import.meta.url));

type Headers = Readonly<Record<string, string>>;

for (const engine of engineNames) {
  describe(`leaving on ${engine}`, () => {
    let program: RunningServer;
    let client: Client;
    let asAda: Headers;
    let adaId: string;
    const followers = createFollowers(() => program);

    before(async () => {
      const database = engine === 'SQLite' ? undefined : await databaseOfProgram(config);
      const env = database === undefined ? {} : { COMITY_DATABASE_URL: database.url };
      program = await startServer({ config, env });
      if (database !== undefined) after(() => database.dispose());
      client = openClient(program.port);
      const ada = await register(client, 'ada@leaving.example', 'correct horse battery');
      asAda = bearer(ada.token);
      adaId = ada.userId;
    });

    after(async () => {
      followers.close();
      client.close();
      await program.stop();
    });

    const write = async (method: string, path: string, json?: unknown): Promise<string> => {
      const answer = await client.ask(method, `${base}/${path}`, {
        headers: asAdministrator,
        ...(json === undefined ? {} : { json }),
      });
      assert.ok(answer.status < 300, `${answer.status} ${answer.body}`);
      return method === 'DELETE' ? '' : String(answer.json().id);
    };

    const { stream: follow, socket: listen } = followers;

    const lastEvent = async (): Promise<string> => {
      const answer = await client.ask('GET', `${base}/events?sort=-created&limit=1000`, {
        headers: asAdministrator,
      });
      const head = await client.ask('GET', `${base}/events?limit=1000`, { headers: asAdministrator });
      assert.equal(answer.status, 200);
      return String((head.json().items as { id: string }[]).at(-1)?.id);
    };

    test('a document that an update hides is left to those who could read it, and silence to those who could not', async () => {
      const [anonymous, owner, administrator] = [
        await follow({}),
        await follow(asAda),
        await follow(asAdministrator),
      ];
      const sockets = [await listen({}), await listen(asAda), await listen(asAdministrator)];
      const id = await write('POST', 'articles', { text: 'out', open: true, keeper: adaId });
      const secret = await write('POST', 'articles', { text: 'never', open: false, keeper: 'nobody' });
      await write('PATCH', `articles/${id}`, { text: 'kept', open: false });
      await write('PATCH', `articles/${secret}`, { text: 'never, still' });
      await write('PATCH', `articles/${id}`, { keeper: 'nobody' });
      await write('PATCH', `articles/${id}`, { text: 'nobody reads' });
      const last = await write('POST', 'articles', { text: 'last', open: true, keeper: 'nobody' });
      const seen = (heard: Heard[]) =>
        heard.map(({ event, data }) => [event, event === 'left' ? data : JSON.parse(data).data.object.text]);
      for (const heard of [anonymous, owner, administrator])
        await until(() => heard.some(({ data }) => data.includes(last)), 'the last event is heard');
      const left = JSON.stringify({ left: { id, collection: 'articles' } });
      assert.deepEqual(seen(anonymous), [
        ['articles.created', 'out'],
        ['left', left],
        ['articles.created', 'last'],
      ]);
      assert.deepEqual(seen(owner), [
        ['articles.created', 'out'],
        ['articles.updated', 'kept'],
        ['left', left],
        ['articles.created', 'last'],
      ]);
      assert.equal(administrator.length, 7);
      assert.equal(
        administrator.some(({ event }) => event === 'left'),
        false,
      );
      for (const frames of sockets) await until(() => frames.some((frame) => frame.includes(last)), 'heard');
      const shown = (frames: string[]) =>
        frames
          .slice(1)
          .map((frame) => (frame.startsWith('{"left"') ? frame : JSON.parse(frame).event.data.object.text));
      assert.deepEqual(sockets.map(shown), [
        ['out', left, 'last'],
        ['out', 'kept', left, 'last'],
        ['out', 'never', 'kept', 'never, still', 'kept', 'nobody reads', 'last'],
      ]);
    });

    test('a filter of types or of one document holds for what left; a resumed stream has it too, with no text that is unreadable now', async () => {
      const start = await lastEvent();
      const id = await write('POST', 'articles', { text: 'first words', open: true, keeper: adaId });
      await write('PATCH', `articles/${id}`, { text: 'other words' });
      await write('PATCH', `articles/${id}`, { open: false, text: 'hidden words' });
      const resumed = await follow({ 'Last-Event-ID': start });
      await until(() => resumed.length === 3, 'resumed');
      assert.deepEqual(
        resumed.map(({ event, data }) => [event, JSON.parse(data).data?.object ?? JSON.parse(data).left]),
        [
          ['articles.created', { id }],
          ['articles.updated', { id }],
          ['left', { id, collection: 'articles' }],
        ],
      );
      const other = await follow({ 'Last-Event-ID': start }, '?type=articles.deleted');
      const one = await follow({ 'Last-Event-ID': start }, `?type=articles.updated&data.object.id=${id}`);
      await until(() => one.length === 2, 'of one type');
      assert.deepEqual(other, []);
      const frames = await listen({}, start);
      await until(() => frames.some((frame) => frame.startsWith('{"left"')), 'caught up');
      assert.equal(frames.join('').includes('words'), false, frames.join('\n'));
      const whole = await follow({ ...asAda, 'Last-Event-ID': start });
      await until(() => whole.length === 3, 'its keeper reads on');
      assert.deepEqual(
        whole.map(({ data }) => JSON.parse(data).data.object.text),
        ['first words', 'other words', 'hidden words'],
      );
    });

    test('the list and single events show no text that the caller may no longer read; deleted documents by their last state', async () => {
      const texts = async (headers: Headers, id: string) => {
        const answer = await client.ask('GET', `${base}/events?data.object.id=${id}`, { headers });
        const items = answer.json().items as { id: string; data: { object: Record<string, unknown> } }[];
        for (const item of items) {
          const single = await client.ask('GET', `${base}/events/${item.id}`, { headers });
          assert.deepEqual(single.json(), item);
        }
        return items.map(({ data }) => data.object.text ?? Object.keys(data.object));
      };
      const id = await write('POST', 'articles', { text: 'one', open: true, keeper: adaId });
      await write('PATCH', `articles/${id}`, { text: 'two' });
      assert.deepEqual(await texts({}, id), ['one', 'two']);
      await write('PATCH', `articles/${id}`, { open: false, text: 'three' });
      assert.deepEqual(await texts({}, id), [['id'], ['id']]);
      assert.deepEqual(await texts(asAda, id), ['one', 'two', 'three']);
      await write('DELETE', `articles/${id}`);
      assert.deepEqual(await texts({}, id), [['id'], ['id']], 'it was hidden when it was deleted');
      const shown = await write('POST', 'articles', { text: 'four', open: true, keeper: adaId });
      await write('DELETE', `articles/${shown}`);
      assert.deepEqual(await texts({}, shown), ['four', 'four']);
      await write(
        'PATCH',
        `articles/${await write('POST', 'articles', { text: 'x', open: false, keeper: 'z' })}`,
        {
          open: true,
        },
      );
    });

    const texts = (heard: Heard[]) =>
      heard.map(
        ({ data }) => JSON.parse(data).left ?? JSON.parse(data).entered ?? JSON.parse(data).data.object.text,
      );

    test('a document of which an import changes the owner is left to the former owner', async () => {
      const bob = await register(client, `bob-${engine}@leaving.example`, 'correct horse battery');
      const asBob = bearer(bob.token);
      const heard = { ada: await follow(asAda), bob: await follow(asBob) };
      const sockets = { ada: await listen(asAda), bob: await listen(asBob) };
      const bring = (owner: string, text: string) =>
        client.ask('POST', `${base}/drafts/bulk`, {
          headers: asAdministrator,
          json: { items: [{ id: 'd1', text, owner }], import: { existing: 'update' } },
        });
      const start = await lastEvent();
      await bring(adaId, 'hers');
      await bring(bob.userId, 'his');
      await bring(bob.userId, 'his, again');
      await bring(adaId, 'hers, again');
      await until(() => texts(heard.ada).includes('hers, again'), 'ada hears the last');
      await until(() => heard.bob.length === 3, 'bob hears that it left');
      const left = { id: 'd1', collection: 'drafts' };
      assert.deepEqual(texts(heard.ada), ['hers', left, 'hers, again']);
      assert.deepEqual(texts(heard.bob), ['his', 'his, again', left]);
      const framesOf = (frames: string[]) =>
        frames.slice(1).map((frame) => JSON.parse(frame).left ?? JSON.parse(frame).event.data.object.text);
      await until(() => sockets.bob.length === 4, 'over the socket too');
      assert.deepEqual(framesOf(sockets.bob), ['his', 'his, again', left]);
      const resumed = await follow({ ...asBob, 'Last-Event-ID': start });
      await until(() => resumed.length === 3, 'resumed');
      assert.equal(resumed.at(-1)?.event, 'left');
      assert.equal(
        resumed.some(({ data }) => data.includes('hers')),
        false,
      );
      const history = await client.ask('GET', `${base}/drafts/d1/history`, { headers: asAdministrator });
      const changes = (history.json().items as { changes: object }[]).map(({ changes: each }) => each);
      assert.equal(history.body.includes('$formerOwner'), false);
      assert.deepEqual(changes[0], { text: { before: 'his, again', after: 'hers, again' } });
    });

    test('a document that leaves because its parent changed sends a left for all of them, and nothing of it from then on', async () => {
      const heard = await follow(asAda);
      const frames = await listen(asAda);
      const shelf = await write('POST', 'shelves', { keeper: adaId });
      const book = await write('POST', 'books', { text: 'one', shelfId: shelf });
      await until(() => texts(heard).includes('one'), 'heard');
      const start = await lastEvent();
      await write('PATCH', `shelves/${shelf}`, { keeper: 'nobody' });
      await write('PATCH', `books/${book}`, { text: 'two' });
      // Judged by the shelf as it is when the event is read, so the next change waits for that.
      await write('POST', 'articles', { text: 'between', open: true, keeper: 'nobody' });
      await until(() => texts(heard).includes('between'), 'the event was judged');
      await until(() => frames.some((frame) => frame.includes('between')), 'for the socket too');
      await write('PATCH', `shelves/${shelf}`, { keeper: adaId });
      await write('PATCH', `books/${book}`, { text: 'three' });
      await until(() => texts(heard).includes('three'), 'heard again');
      await until(() => frames.some((frame) => frame.includes('three')), 'over the socket too');
      const books = { collection: 'books', where: { shelfId: shelf } };
      assert.deepEqual(texts(heard), ['one', books, 'between', books, 'three']);
      assert.deepEqual(
        heard.map(({ event }) => event),
        ['books.created', 'left', 'articles.created', 'entered', 'books.updated'],
      );
      assert.equal(frames.slice(1).length, 5, frames.join('\n'));
      await write('PATCH', `shelves/${shelf}`, { keeper: 'nobody' });
      const resumed = await follow({ ...asAda, 'Last-Event-ID': start });
      const last = await write('POST', 'articles', { text: 'last', open: true, keeper: 'nobody' });
      await until(() => resumed.some(({ data }) => data.includes(last)), 'resumed');
      assert.equal(
        resumed.some(({ data }) => data.includes('three')),
        false,
      );
    });

    test('streams and sockets of a caller whose roles change end before anything follows', async (context) => {
      const cy = await register(client, `cy-${engine}@leaving.example`, 'correct horse battery');
      const asCy = bearer(cy.token);
      await write('PATCH', `users/${cy.userId}`, { roles: ['administrator'] });
      const answer = await fetch(`${program.url}${base}/events`, {
        headers: { Accept: 'text/event-stream', ...asCy },
      });
      const text = answer.text();
      const socket = new WebSocket(`${program.url.replace('http', 'ws')}${base}/realtime`, 'comity.v1', {
        headers: asCy,
      });
      context.after(() => socket.terminate());
      const frames: string[] = [];
      socket.on('message', (data) => frames.push(String(data)));
      await new Promise((resolve) => socket.on('open', resolve));
      socket.send(JSON.stringify({ subscribe: ['*'] }));
      await until(() => frames.length > 0, 'subscribed');
      const closed = new Promise((resolve) => socket.on('close', resolve));
      await write('POST', 'articles', { text: 'as an administrator', open: false, keeper: 'nobody' });
      await until(() => frames.length > 1, 'heard');
      await write('PATCH', `users/${cy.userId}`, { roles: [] });
      await write('POST', 'articles', { text: 'not any more', open: false, keeper: 'nobody' });
      await closed;
      const whole = await text;
      assert.match(whole, /as an administrator/);
      assert.doesNotMatch(whole, /not any more/);
      assert.doesNotMatch(frames.join(), /not any more/);
    });
  });
}
