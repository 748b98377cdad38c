/**
 * The feed of events (§6.15) behind two processes on one PostgreSQL: followers that ask either, in turn, while 12 writers write to both, miss
 * nothing, get nothing twice, and have the order that the streams of both have.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { asAdministrator, base, bearer, openClient, register } from '../../harness/account-client.ts';
import { createFollowers } from '../../harness/event-followers.ts';
import { followFeed, nameOf, readFeed } from '../../harness/feed-follower.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../../wire/fixtures/leaving.config.ts', import.meta.url));
const writers = 12;
const rounds = 30;

test('three followers of two processes get every event once, in the order of the streams of both', async () => {
  const database = await databaseOfProgram(config);
  const env = {
    COMITY_CONFIG: config,
    COMITY_DATABASE_URL: database.url,
    COMITY_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
  };
  const programs: ServerProcess[] = [];
  const closing: (() => void)[] = [];
  after(async () => {
    for (const close of closing) close();
    for (const program of programs) await program.stop();
    await database.dispose();
  });
  for (let at = 0; at < 2; at += 1) programs.push(await spawnServer({ env }));
  const clients = programs.map(({ port }) => openClient(port));
  closing.push(...clients.map((client) => () => client.close()));
  const [one, other] = clients;
  assert.ok(one !== undefined && other !== undefined);
  const ada = await register(one, 'ada@feed.example', 'correct horse battery');
  const readers = [{}, bearer(ada.token), asAdministrator];
  const streams = await Promise.all(
    programs.flatMap((program) => {
      const followers = createFollowers(() => program);
      closing.push(followers.close);
      return readers.map((headers) => followers.stream(headers));
    }),
  );
  const place = (await readFeed(programs[0]?.url ?? '', 'after=now', asAdministrator)).nextCursor;
  let writing = true;
  let turn = 0;
  const feeds = readers.map((headers) =>
    followFeed(
      () => {
        turn += 1;
        return { url: programs[turn % 2]?.url ?? '', limit: [1, 7, 100][turn % 3] ?? 1 };
      },
      { headers, isOver: () => !writing, pauseMs: 20 },
    ),
  );
  const article = (open: boolean, keeper: string) => ({ text: 't', open, keeper });
  const write = async (client: typeof one, json: unknown): Promise<string> => {
    const made = await client.ask('POST', `${base}/articles`, { headers: asAdministrator, json });
    assert.equal(made.status, 201, made.body);
    return String(made.json().id);
  };
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const client = writer % 2 === 0 ? one : other;
      for (let round = 0; round < rounds; round += 1) {
        await write(client, article(round % 3 === 0, round % 3 === 1 ? ada.userId : 'nobody'));
      }
    }),
  );
  const last = await write(one, article(true, 'nobody'));
  writing = false;
  for (const [at, stream] of streams.entries()) {
    await until(() => stream.some(({ data }) => data.includes(last)), 'the stream has the last event');
    const streamed = stream.map(({ data }) => nameOf(JSON.parse(data)));
    const polled = (await feeds[at % readers.length]) ?? [];
    assert.equal(new Set(polled).size, polled.length, 'nothing twice');
    assert.deepEqual(polled.slice(-streamed.length), streamed);
  }
  const all = await readFeed(programs[1]?.url ?? '', `after=${place}&limit=1000`, asAdministrator);
  assert.equal(all.items.length, writers * rounds + 1, 'a place of one process serves the other');
});
