/** The receiver of examples/receiver, which other tests believe: it must tell good deliveries from bad ones itself. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { type Receiver, startReceiver } from '../../../examples/receiver/start-receiver.ts';
import { signPlain, signStandard, signTimestamped } from '../../../src/webhooks/index.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const body = JSON.stringify({ id: 'evt_1', type: 'products.created', data: { object: { id: 'p1' } } });
let receiver: Receiver;

before(async () => {
  receiver = await startReceiver({ secrets: [secret] });
});
after(() => receiver.close());

async function post(path: string, headers: Readonly<Record<string, string>>, content = body) {
  const answer = await fetch(`${receiver.url}${path}`, {
    method: 'POST',
    headers,
    body: content,
    redirect: 'manual',
    signal: AbortSignal.timeout(5000),
  });
  return answer;
}

async function standard(id: string, signedBody = body): Promise<Record<string, string>> {
  return { ...(await signStandard({ id, body: signedBody, secrets: [secret] })) };
}

test('accepts what is signed well in each scheme, and knows its id and type', async () => {
  const sent: readonly [string, Record<string, string>][] = [
    ['standard', await standard('evt_1')],
    ['timestamped', { 'Service-Signature': await signTimestamped({ body, secrets: [secret] }) }],
    [
      'plain',
      {
        'X-Hub-Signature-256': (await signPlain({ body, secrets: [secret] }))[0] ?? '',
        'X-Service-Event': 'products.created',
        'X-Service-Delivery': 'dlv_1',
      },
    ],
  ];
  for (const [scheme, headers] of sent) {
    assert.equal((await post(`/ok/${scheme}`, headers)).status, 204);
    const last = receiver.received.at(-1);
    const id = scheme === 'plain' ? 'dlv_1' : 'evt_1';
    assert.deepEqual(
      [last?.scheme, last?.id, last?.type, last?.verdict, last?.duplicate],
      [scheme, id, 'products.created', 'verified', false],
    );
  }
});

test('refuses a body that was changed, a stale one, and one without a signature', async () => {
  assert.equal((await post('/ok', await standard('evt_2'), body.replace('p1', 'p2'))).status, 400);
  assert.equal(receiver.received.at(-1)?.verdict, 'no-match');
  const old = await signStandard({ id: 'evt_2', body, secrets: [secret], timestamp: 1_700_000_000 });
  assert.equal((await post('/ok', { ...old })).status, 400);
  assert.equal(receiver.received.at(-1)?.verdict, 'stale');
  assert.equal((await post('/ok', {})).status, 400);
  assert.equal(receiver.received.at(-1)?.verdict, 'missing');
});

test('answers a duplicate like the first, and knows it', async () => {
  for (const duplicate of [false, true, true]) {
    assert.equal((await post('/twice', await standard('evt_3'))).status, 204);
    assert.equal(receiver.received.at(-1)?.duplicate, duplicate);
  }
});

test('misbehaves as the path says', async () => {
  const headers = await standard('evt_4');
  assert.equal((await post('/status/503', headers)).status, 503);
  const limited = await post('/retry-after/7', headers);
  assert.deepEqual([limited.status, limited.headers.get('retry-after')], [429, '7']);
  assert.equal((await post('/gone', headers)).status, 410);
  const moved = await post('/redirect', headers);
  assert.deepEqual([moved.status, moved.headers.get('location')], [302, '/ok']);
  const tries = [];
  for (let turn = 0; turn < 3; turn += 1) tries.push((await post('/flaky/3', headers)).status);
  assert.deepEqual(tries, [503, 503, 204]);
  await assert.rejects(post('/reset', headers));
  await assert.rejects(post('/garbage', headers));
});

test('answers before it has read where the path says so', async () => {
  const { hostname, port } = new URL(receiver.url);
  const socket = connect(Number(port), hostname);
  socket.write('POST /early HTTP/1.1\r\nHost: receiver\r\nContent-Length: 5\r\n\r\n');
  const [answer] = (await once(socket, 'data')) as [Buffer];
  assert.match(answer.toString('latin1'), /^HTTP\/1\.1 204 /);
  socket.destroy();
});

test('shows what came, and tells who waits for it', async () => {
  const came = receiver.until((all) => all.some(({ id }) => id === 'evt_last'));
  await post('/ok', await standard('evt_last'));
  await came;
  const log = (await (await fetch(`${receiver.url}/log`)).json()) as readonly { id: string }[];
  assert.equal(log.at(-1)?.id, 'evt_last');
});
