/** `comity call`: the actions of a configuration, from the command line. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type CommandOptions, type Outcome, runCommand } from '../harness/command-line.ts';
import { adminKey } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const config = fileURLToPath(new URL('../wire/logic/fixtures/actions.config.ts', import.meta.url));
const folder = temporaryFolder();
let server: RunningServer;

before(async () => {
  server = await startServer({ config });
});

after(async () => {
  await server.stop();
});

function call(...args: readonly string[]): Promise<Outcome> {
  return callWith({ COMITY_ADMIN_KEY: adminKey }, {}, ...args);
}

function callWith(
  environment: Readonly<Record<string, string>>,
  options: CommandOptions,
  ...args: readonly string[]
): Promise<Outcome> {
  return runCommand(['call', ...args], { COMITY_URL: server.url, ...environment }, options);
}

async function ticket(title: string): Promise<string> {
  const made = await server.send('POST', '/api/v1/tickets', { json: { title } });
  return String(made.json().id);
}

test('calls an action by its path, with its input as content or as a query', async () => {
  const [first, second] = [await ticket('one'), await ticket('two')];
  const merged = await call(`tickets/${first}/merge`, '--input', JSON.stringify({ into: second }));
  assert.deepEqual(merged, { code: 0, stdout: '{\n  "moved": 0,\n  "note": "merged"\n}\n', stderr: '' });
  const ping = await call('/ping', '--method', 'get', '--input', '{"n": 3, "tags": ["a", "b"]}');
  assert.deepEqual(JSON.parse(ping.stdout), { pong: 3, tags: ['a', 'b'] });
  const added = await call('sums/one/add');
  assert.deepEqual(JSON.parse(added.stdout), { sum: 1 });
});

test('takes the input from a file or from stdin', async () => {
  const file = join(folder, 'input.json');
  writeFileSync(file, '{"by": 4}');
  assert.deepEqual(JSON.parse((await call('sums/fed/add', '--input', `@${file}`)).stdout), { sum: 4 });
  const fed = await callWith(
    { COMITY_KEY: adminKey },
    { input: '{"by": 2}' },
    'sums/fed/add',
    '--input',
    '-',
  );
  assert.deepEqual(JSON.parse(fed.stdout), { sum: 6 });
});

test('prints content that is no JSON as it comes, and base64 with --json', async () => {
  const id = await ticket('three');
  const [head, ...rows] = (await call('tickets/export', '--input', '{"limit": 1000}')).stdout.split('\n');
  assert.deepEqual([head, rows.includes(`${id},three`)], ['id,title', true]);
  const bytes = JSON.parse((await call('bytes', '--json')).stdout);
  assert.deepEqual(bytes, { contentType: 'image/png', body: Buffer.from([1, 2, 255]).toString('base64') });
  assert.deepEqual(await call('quiet'), { code: 0, stdout: '', stderr: '' });
  assert.equal((await call('quiet', '--json')).stdout, 'null\n');
});

test('prints where a redirect leads, and does not follow it', async () => {
  assert.deepEqual(await call('move'), { code: 0, stdout: 'https://example.com/a?b=c\n', stderr: '' });
  assert.deepEqual(JSON.parse((await call('go', '--json')).stdout), { location: '/docs' });
});

test('needs no key for an action that is public', async () => {
  assert.equal((await callWith({}, {}, 'go')).code, 0);
  const refused = await callWith({}, {}, 'quiet');
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
});

test('tells in the words of the action what it refuses, and exits 1', async () => {
  const locked = await call('strange', '--input', '{"text": "known code"}');
  assert.deepEqual(locked, { code: 1, stdout: '', stderr: 'comity: it is locked\n' });
  const without = await call('strange', '--input', '{}');
  assert.deepEqual(without, {
    code: 1,
    stdout: '',
    stderr: 'comity: missing required field: text is required\n',
  });
  const missing = await call('tickets/none/merge', '--input', '{"into": "x"}');
  assert.equal(missing.code, 1);
  const key = await callWith({ COMITY_KEY: 'sk_wrong' }, {}, 'quiet');
  assert.match(key.stderr, /does not accept the key in COMITY_KEY/);
});

test('says that there is no such action, and that a path has several methods', async () => {
  const none = await call('pong');
  assert.deepEqual([none.code, none.stdout], [1, '']);
  assert.equal(none.stderr, `comity: there is no action at ${server.url}/api/v1/pong\n`);
  const several = await call('ping');
  assert.equal(several.code, 2);
  assert.match(several.stderr, /^comity: \/ping allows .*GET.*QUERY.*; --method chooses one\n$/);
  const chosen = await call('ping', '--method', 'QUERY', '--input', '{"text": "loud"}');
  assert.equal(chosen.stdout, 'LOUD\n');
});

for (const args of [[], ['ping', '--input', '[1]'], ['ping', '--input', '@/nowhere/at/all'], ['ping', 'x']]) {
  test(`answers "comity call ${args.join(' ')}" with the usage exit code`, async () => {
    const { code, stdout, stderr } = await call(...args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.notEqual(stderr, '');
  });
}
