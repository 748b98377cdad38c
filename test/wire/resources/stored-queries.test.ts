/** What stored queries may cost: the bounds in octets on one query, on those of an owner and on all together. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type RunningServer, type StartOptions, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

async function open(context: TestContext, options: StartOptions) {
  const program = await startServer(options);
  context.after(() => program.stop());
  return program;
}

const json = { 'Content-Type': 'application/json' };

/** A QUERY whose content is about `octets` long and is no other's. */
function ask(program: RunningServer, name: string, octets: number, anonymous = true) {
  // Characters in no order, which compression does not make much shorter.
  let state = Number.parseInt(Buffer.from(name).toString('hex').slice(-8), 16);
  let filler = '';
  while (filler.length < octets) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    filler += (state >>> 8).toString(36);
  }
  const body = JSON.stringify({ filter: { name: { in: [name, filler.slice(0, octets)] } }, limit: 1 });
  return program.send('QUERY', '/api/v1/products', { body, headers: json, anonymous });
}

function assertWithoutLocation(answer: Awaited<ReturnType<RunningServer['send']>>): void {
  assert.equal(answer.status, 200);
  for (const field of ['location', 'content-location', 'link'])
    assert.equal(answer.headers[field], undefined);
  assert.match(String(answer.headers.etag), /^"/);
}

test('answers a QUERY that is too long to be stored without Location, and pages by its cursor', async (context) => {
  const program = await open(context, { bounds: { storedQueryBytesMax: 300 } });
  const category = await program.send('POST', '/api/v1/categories', { json: { name: 'c' } });
  const categoryId = String(category.json().id);
  for (const name of ['a', 'b']) {
    await program.send('POST', '/api/v1/products', { json: { name, price: 1, categoryId } });
  }
  const body = (length: number, cursor?: string) =>
    JSON.stringify({ filter: { name: { in: ['a', 'b', 'x'] } }, sort: 'name', limit: 1, cursor }).padEnd(
      length,
    );
  const query = (content: string) =>
    program.send('QUERY', '/api/v1/products', { body: content, headers: json, anonymous: true });

  const stored = await query(body(300));
  assert.equal(stored.status, 200);
  assert.equal((await program.send('GET', String(stored.headers.location))).body, stored.body);

  const long = await query(body(301));
  assertWithoutLocation(long);
  assert.equal(long.body, stored.body);
  const next = await query(body(301, String(long.json().nextCursor)));
  assert.deepEqual(
    (next.json().items as { name: string }[]).map(({ name }) => name),
    ['b'],
  );
  const unchanged = await program.send('QUERY', '/api/v1/products', {
    body: body(301),
    headers: { ...json, 'If-None-Match': String(long.headers.etag) },
    anonymous: true,
  });
  assert.equal(unchanged.status, 304);
  assert.equal(unchanged.headers.location, undefined);
});

test('repeats a short query, which is contained in its URI, without storing it', async (context) => {
  const program = await open(context, { env: { COMITY_STORED_QUERIES_BYTES_MAX: '0' } });
  await program.send('POST', '/api/v1/categories', { json: { name: 'a short one' } });
  const asked = await program.send('QUERY', '/api/v1/categories', {
    json: { filter: { name: 'a short one' } },
  });
  assert.equal(asked.status, 200);
  const location = String(asked.headers.location);
  assert.equal((await program.send('GET', location)).body, asked.body);
  assert.equal((await program.send('GET', String(asked.headers['content-location']))).body, asked.body);
  const altered = `${location.slice(0, -3)}${location.endsWith('AAA') ? 'BBB' : 'AAA'}`;
  assert.equal((await program.send('GET', altered)).status, 404);
  assertWithoutLocation(await ask(program, 'a long one', 300));
});

test('repeats a long stored query, which is kept compressed, as it was asked', async (context) => {
  const program = await open(context, {});
  const asked = await ask(program, 'é and 😀', 100_000);
  assert.equal(asked.status, 200);
  const repeated = await program.send('GET', String(asked.headers.location), { anonymous: true });
  assert.equal(repeated.status, 200);
  assert.equal(repeated.body, asked.body);
});

test('stores for each owner up to its bound, and leaves room for others', async (context) => {
  const program = await open(context, { bounds: { storedQueriesPerOwnerBytesMax: 40_000 } });
  const locations: string[] = [];
  for (let at = 0; ; at += 1) {
    const answer = await ask(program, `anonymous ${at}`, 8000);
    if (answer.headers.location === undefined) {
      assertWithoutLocation(answer);
      break;
    }
    locations.push(String(answer.headers.location));
    assert.ok(at < 10, 'the bound was passed');
  }
  assert.ok(locations.length >= 4, `${locations.length} were stored`);
  for (const location of locations) {
    assert.equal((await program.send('GET', location, { anonymous: true })).status, 200, 'none was dropped');
  }
  const again = await ask(program, 'anonymous 0', 8000);
  assert.equal(again.headers.location, locations[0], 'what is stored already costs nothing');
  const other = await ask(program, 'of the administrator', 8000, false);
  assert.notEqual(other.headers.location, undefined);
});

test('stores for all together up to their bound', async (context) => {
  const program = await open(context, { env: { COMITY_STORED_QUERIES_BYTES_MAX: '20000' } });
  const owners = [true, false, true, false, true, false];
  const answers = [];
  for (const [at, anonymous] of owners.entries()) {
    answers.push(await ask(program, `query ${at}`, 8000, anonymous));
  }
  const stored = answers.filter(({ headers }) => headers.location !== undefined);
  assert.ok(stored.length >= 1 && stored.length <= 3, `${stored.length} were stored`);
  assertWithoutLocation(answers.at(-1) as (typeof answers)[number]);
});

test('still knows after a restart what an owner has stored', async (context) => {
  const bounds = { storedQueriesPerOwnerBytesMax: 30_000 };
  const folder = temporaryFolder();
  const first = await startServer({ bounds, folder });
  let count = 0;
  while ((await ask(first, `query ${count}`, 8000)).headers.location !== undefined) count += 1;
  await first.stop();
  const second = await open(context, { bounds, folder });
  assertWithoutLocation(await ask(second, 'one more', 8000));
  assert.notEqual((await ask(second, 'query 0', 8000)).headers.location, undefined);
});
