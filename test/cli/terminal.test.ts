/** What a command has of its process: lines go out as they are, stdin is opened by whoever reads it, and a person is asked. */
import assert from 'node:assert/strict';
import { PassThrough, Readable, Writable } from 'node:stream';
import { after, before, test } from 'node:test';
import { openTerminal } from '../../src/cli/terminal.ts';
import { type Outcome, runCommand } from '../harness/command-line.ts';
import { adminKey } from '../harness/exchange.ts';
import { type RunningServer, startServer } from '../harness/running-server.ts';

let server: RunningServer;

before(async () => {
  server = await startServer();
});

after(() => server.stop());

test('prints lines as they are, each on its stream', () => {
  const stdout = new PassThrough({ encoding: 'utf8' });
  const stderr = new PassThrough({ encoding: 'utf8' });
  const terminal = openTerminal({}, { stdin: Readable.from([]), stdout, stderr });
  terminal.out('100 %s of %d');
  terminal.err('one\ntwo');
  assert.deepEqual([stdout.read(), stderr.read()], ['100 %s of %d\n', 'one\ntwo\n']);
});

test('goes on where nobody reads what it prints', async () => {
  const closed = () =>
    new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    });
  const terminal = openTerminal({}, { stdin: Readable.from([]), stdout: closed(), stderr: closed() });
  for (const print of [terminal.out, terminal.err, terminal.out]) {
    print('lost');
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test('looks at stdin when a command reads it, and not before', () => {
  let looks = 0;
  const stdout = new PassThrough();
  const terminal = openTerminal(
    {},
    {
      get stdin() {
        looks += 1;
        return Readable.from([]);
      },
      stdout,
      stderr: stdout,
    },
  );
  terminal.out('a line');
  assert.equal(looks, 0);
  assert.ok(terminal.stdin.readable);
  assert.equal(looks, 1);
});

test('asks at a terminal before it deletes, and takes anything but yes for no', async () => {
  const environment = { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey };
  const email = 'ada@shop.example';
  const users = (input: string, ...args: readonly string[]): Promise<Outcome> =>
    runCommand(['users', ...args], environment, { input, isTerminal: true });
  assert.equal((await users('', 'create', email, '--no-password')).code, 0);
  const question = `Delete ${email} with its password, sessions and keys? [y/N] `;
  for (const answer of ['n\n', '\n', 'maybe\n']) {
    const kept = await users(answer, 'delete', email);
    assert.deepEqual(kept, { code: 1, stdout: '', stderr: `${question}comity: nothing was deleted\n` });
  }
  const deleted = await users('Yes\n', 'delete', email);
  assert.deepEqual([deleted.code, deleted.stderr], [0, question]);
  assert.equal((await users('', 'show', email)).code, 1);
});

test('reads no password from a terminal, where everybody could see it', async () => {
  const outcome = await runCommand(
    ['users', 'create', 'bob@shop.example', '--password-stdin'],
    { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey },
    { isTerminal: true },
  );
  const stderr = 'comity: --password-stdin reads a pipe; without it a password is generated and shown\n';
  assert.deepEqual(outcome, { code: 2, stdout: '', stderr });
});
