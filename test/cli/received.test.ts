/** `comity senders` and `comity received`, in this process, against the inbox behind a socket. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { HandOnTo } from '../../src/config/senders.ts';
import type { Received } from '../../src/model/received.ts';
import type { ShownSender } from '../../src/webhooks/receiving/sender-routes.ts';
import type { SecretName } from '../../src/webhooks/receiving/sender-secrets.ts';
import { type CommandOptions, type Outcome, runCommand } from '../harness/command-line.ts';
import { openEmbedded } from '../harness/stores.ts';
import { dropContent, logAttempts, openInbox, senderOf } from '../webhooks/received/walked-inbox.ts';
import { startInboxServer } from './inbox-server.ts';

type RotatedSecret = { readonly sender: string; readonly use: string; readonly secret: string };

const adminKey = 'sk_test_0123456789abcdef0123456789';
const rotated: (SecretName & { readonly overlapMs: number })[] = [];
const url = new URL('https://books.example/hooks');
const forward: HandOnTo = {
  ...{ kind: 'forward', url, scheme: 'standard', secretVariable: 'PARTNER_FORWARD_SECRET', headers: {} },
};
const room = openInbox(await openEmbedded(), {
  senders: [senderOf('billing'), senderOf('partner', forward), senderOf('fixed', { kind: 'inbox' })],
  settings: { receivedReplayMax: 2 },
  secrets: {
    of: () => [{ secret: 'whsec_hidden', until: null }],
    source: ({ sender }) => (sender === 'fixed' ? 'environment' : 'store'),
    refresh: async () => undefined,
    rotate: async (name, { secret = 'whsec_bWFkZQ==', overlapMs }) => {
      rotated.push({ ...name, overlapMs });
      return { secret };
    },
  },
});
const server = await startInboxServer(room, adminKey);
after(() => server.close());

function comity(...args: readonly string[]): Promise<Outcome> {
  return comityWith({}, ...args);
}

function comityWith(options: CommandOptions, ...args: readonly string[]): Promise<Outcome> {
  return runCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey }, options);
}

async function json<T>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await comity(...args, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

/** What a command writes to stdout that is no line of text. */
async function octets(...args: readonly string[]): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  assert.equal((await comityWith({ stdout }, ...args)).code, 0);
  return Buffer.concat(chunks);
}

test('lists the senders, with "senders" alone as well, and shows one', async () => {
  const { stdout } = await comity('senders');
  const [head = '', first = ''] = stdout.split('\n');
  assert.match(head, /^NAME +PRESET +HANDED ON +SECRETS FROM +SECRETS +PATH$/);
  assert.match(first, /^billing +handler +store +1 +\/api\/v1\/webhooks\/billing$/);
  assert.equal((await comity('senders', 'list')).stdout, stdout);
  const names = (await json<readonly ShownSender[]>('senders')).map(({ name }) => name);
  assert.deepEqual(names, ['billing', 'partner', 'fixed']);
  const shown = await comity('senders', 'show', 'partner');
  assert.match(shown.stdout, /^signature {4}HMAC sha256 in service-signature as hex, at most 300 s old$/m);
  assert.match(shown.stdout, /^handed on {4}forwarded to https:\/\/books\.example\/hooks as standard$/m);
  assert.match(shown.stdout, /^secrets {6}1 kept here, PARTNER_WEBHOOK_SECRET is not set$/m);
  assert.ok(!shown.stdout.includes('whsec_'));
  const none = await comity('senders', 'show', 'nobody');
  assert.deepEqual(none, { code: 1, stdout: '', stderr: 'comity: there is no sender nobody\n' });
});

test('rotates a secret and prints it alone on stdout, this once', async () => {
  const { code, stdout, stderr } = await comity(
    'senders',
    'rotate-secret',
    'billing',
    '--overlap-seconds',
    '60',
  );
  assert.deepEqual([code, stdout], [0, 'whsec_bWFkZQ==\n']);
  assert.equal(stderr, 'comity: billing: the secret is shown only once; give it to the sender now\n');
  const made = await json<RotatedSecret>('senders', 'rotate-secret', 'partner', '--use', 'forward');
  assert.deepEqual(made, { sender: 'partner', use: 'forward', secret: 'whsec_bWFkZQ==' });
  assert.deepEqual(rotated, [
    { sender: 'billing', use: 'receive', overlapMs: 60_000 },
    { sender: 'partner', use: 'forward', overlapMs: 0 },
  ]);
  const fixed = await comity('senders', 'rotate-secret', 'fixed');
  assert.equal(fixed.code, 1);
  assert.match(
    fixed.stderr,
    /^comity: the environment variable FIXED_WEBHOOK_SECRET sets the secrets of this sender; /,
  );
});

test('takes the secret that a sender gave from stdin, and does not print it again', async () => {
  const rotate = ['senders', 'rotate-secret', 'billing', '--secret-from-stdin'];
  const given = await comityWith({ input: 'theirs\nand more' }, ...rotate);
  const stderr = 'comity: billing: the given secret is valid from now on\n';
  assert.deepEqual(given, { code: 0, stdout: '', stderr });
  const made = await comityWith({ input: 'theirs again\n' }, ...rotate, '--json');
  assert.equal(made.code, 0, made.stderr);
  assert.equal((JSON.parse(made.stdout) as RotatedSecret).secret, 'theirs again');
  const none = await comityWith({ input: '\n' }, ...rotate);
  assert.deepEqual(none, { code: 2, stdout: '', stderr: 'comity: stdin has no secret\n' });
});

test('lists received messages by sender, status, type and time, the newest first', async () => {
  const old = new Date(room.clock() - 7_200_000).toISOString();
  const first = await room.put({ type: 'listed', receivedAt: old });
  const second = await room.put({ type: 'listed', status: 'failed', lastError: 'thrown', dueAt: null });
  await room.put({ type: 'listed', sender: 'partner' });
  const ids = async (...args: readonly string[]) =>
    (await json<readonly Received[]>('received', 'list', '--type', 'listed', ...args)).map(({ id }) => id);
  assert.deepEqual(await ids('--sender', 'billing'), [second.id, first.id]);
  assert.deepEqual(await ids('--status', 'failed'), [second.id]);
  assert.deepEqual(await ids('--sender', 'billing', '--since', '1h'), [second.id]);
  const { stdout, stderr } = await comity('received', 'list', '--type', 'listed', '--status', 'failed');
  const [head = '', line = ''] = stdout.split('\n');
  assert.match(head, /^ID +SENDER +TYPE +STATUS +ATTEMPTS +LAST ERROR +DUE +RECEIVED$/);
  assert.match(line, /^rec_\S+ +billing +listed +failed +0 +thrown +\S+Z$/);
  assert.equal(stderr, '');
  assert.equal((await comity('received', 'list', '--type', 'none')).stdout, 'No received messages.\n');
});

test('shows a message with its attempts', async () => {
  const { id } = await room.put({ attempts: 2, lastError: 'thrown' });
  await logAttempts(room, id, 2);
  const shown = await comity('received', 'show', id);
  assert.match(shown.stdout, /^status {4}pending \(thrown\)$/m);
  assert.match(shown.stdout, /^\S+Z +automatic +thrown +3 ms +fault 2$/m);
  assert.equal((await json<{ attemptLog: object[] }>('received', 'show', id)).attemptLog.length, 2);
  assert.match((await comity('received', 'attempts', id)).stdout, /^AT +TRIGGER +OUTCOME +TOOK +MESSAGE$/m);
  for (const command of ['show', 'attempts', 'body', 'replay']) {
    const gone = { code: 1, stdout: '', stderr: 'comity: there is no received message rec_x\n' };
    assert.deepEqual(await comity('received', command, 'rec_x'), gone, command);
  }
});

test('writes the octets of a body as they came, whatever coding they have or claim to have', async () => {
  const coded = gzipSync(Buffer.alloc(5000, 7));
  for (const body of [coded, Buffer.from([0xff, 0x00, 0x0a])]) {
    const { id } = await room.put({}, { contentEncoding: 'gzip', body: body.toString('base64') });
    assert((await octets('received', 'body', id)).equals(body));
    const shown = await json<{ body: string; contentType: string }>('received', 'body', id);
    assert.deepEqual([shown.body, shown.contentType], [body.toString('base64'), 'application/json']);
  }
  const bare = await room.put();
  await dropContent(room, bare);
  const gone = await comity('received', 'body', bare.id);
  assert.deepEqual([gone.code, gone.stderr], [1, `comity: there is no body of ${bare.id} any more\n`]);
});

test('ends well when the reader of a body went away, and not when the octets cannot be written', async () => {
  const { id } = await room.put();
  const outcome = async (code: string) => {
    const stdout = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error(`write ${code}`), { code })),
    });
    const { code: exitCode, stderr } = await comityWith({ stdout }, 'received', 'body', id);
    return [exitCode, stderr];
  };
  assert.deepEqual(await outcome('EPIPE'), [0, '']);
  assert.deepEqual(await outcome('ENOSPC'), [1, 'comity: write ENOSPC\n']);
});

test('replays messages by id, goes on to the next when one is refused, and exits 1 then', async () => {
  const { id } = await room.put({ status: 'failed', dueAt: null });
  const done = await comity('received', 'replay', id);
  assert.deepEqual(done, { code: 0, stdout: `${id} is handed on again.\n`, stderr: '' });
  assert.equal((await room.stored(id)).status, 'pending');
  const bare = await room.put({ status: 'failed' });
  await dropContent(room, bare);
  const partly = await comity('received', 'replay', bare.id, id);
  assert.deepEqual(partly, {
    ...{ code: 1, stdout: `${id} is handed on again.\n` },
    stderr: `comity: ${bare.id}: the body of this message is no longer kept\n`,
  });
});

test('replays all that the options choose, piece by piece to the end, and only counts in a dry run', async () => {
  const chosen = ['--sender', 'billing', '--type', 'chosen', '--status', 'failed'];
  for (let at = 0; at < 5; at += 1) await room.put({ type: 'chosen', status: 'failed', dueAt: null });
  const bare = await room.put({ type: 'chosen', status: 'failed' });
  await dropContent(room, bare);
  const counted = await comity('received', 'replay', ...chosen, '--dry-run');
  assert.equal(counted.stdout, '6 messages would be handed on again.\n');
  const done = await json<object>('received', 'replay', ...chosen, '--since', '1h');
  assert.deepEqual(done, { replayed: 5, skipped: 1, dryRun: false });
  const again = await comity('received', 'replay', ...chosen, '--yes');
  assert.equal(
    again.stdout,
    '0 messages are handed on again; 1 could not be, because their bodies or senders are gone.\n',
  );
});

test('marks a message by hand', async () => {
  const { id } = await room.put();
  const marked = await comity('received', 'mark', id, '--as', 'failed');
  assert.deepEqual(marked, { code: 0, stdout: `${id} is failed.\n`, stderr: '' });
  assert.equal((await json<Received>('received', 'mark', id, '--as', 'processed')).status, 'processed');
  assert.equal((await comity('received', 'mark', 'rec_x', '--as', 'failed')).code, 1);
});

for (const args of [
  ['senders', 'show'],
  ['senders', 'rotate-secret'],
  ['senders', 'rotate-secret', 'billing', 'whsec_on-the-command-line'],
  ['senders', 'rotate-secret', 'billing', '--overlap-seconds', 'x'],
  ['senders', 'rotate-secret', 'billing', '--use', 'both'],
  ['received'],
  ['received', 'list', '--status', 'lost'],
  ['received', 'list', '--since', 'soon'],
  ['received', 'replay'],
  ['received', 'replay', 'rec_x', '--status', 'failed'],
  ['received', 'mark', 'rec_x'],
  ['received', 'mark', 'rec_x', '--as', 'pending'],
]) {
  test(`answers "comity ${args.join(' ')}" with the usage exit code`, async () => {
    const { code, stdout, stderr } = await comity(...args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.notEqual(stderr, '');
  });
}
