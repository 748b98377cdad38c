import assert from 'node:assert/strict';
import { connect, Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { createServer } from 'node:tls';
import { createDialer, type DialDecision, type DialerOptions, newProgress } from '../../src/egress/dial.ts';
import { DialFailure } from '../../src/egress/dial-failure.ts';
import { createEgressPolicy } from '../../src/egress/policy.ts';
import { cert, key } from '../accounts/mail/certificate.ts';
import { type Listening, listen } from '../harness/listening.ts';
import { plainAnswer, type RawReceiver, startRawReceiver } from './raw-receiver.ts';

let plain: RawReceiver;
let other: RawReceiver;
let secured: Listening;

const policy = createEgressPolicy({
  egressAllow: '127.0.0.0/8',
  egressPorts: '443',
  ownListeners: () => [],
});

before(async () => {
  plain = await startRawReceiver((socket) => socket.end(plainAnswer(200, '')));
  other = await startRawReceiver((socket) => socket.end(plainAnswer(200, '')), { host: '127.0.0.2' });
  const server = createServer({ cert, key, ALPNProtocols: ['h2', 'http/1.1'] });
  secured = await listen(server.on('tlsClientError', () => undefined));
});

after(async () => {
  await Promise.all([plain.close(), other.close(), secured.close()]);
});

function dialerWith(options: Partial<DialerOptions> = {}) {
  return createDialer({ policy, egressDnsMs: 2000, egressConnectMs: 2000, ...options });
}

/** A lookup that gives each of the answers once, and counts. */
function lookupOf(...answers: readonly (readonly string[])[]) {
  const asked: string[] = [];
  const lookup = async (hostname: string): Promise<readonly string[]> => {
    asked.push(hostname);
    return answers[asked.length - 1] ?? assert.fail('looked up once more');
  };
  return { lookup, asked };
}

async function failureOf(dialled: Promise<unknown>): Promise<DialFailure> {
  const error = await dialled.then(
    () => assert.fail('it was connected'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof DialFailure, String(error));
  assert.doesNotMatch(error.message, /\d+\.\d+\.\d+\.\d+/);
  return error;
}

test('reaches localhost by the one of its two addresses that is let through, and by none other', async () => {
  const { lookup } = lookupOf(['::1', '127.0.0.1'], ['::1'], ['10.0.0.1', '::1']);
  const dial = dialerWith({ lookup });
  const { socket, address } = await dial({ hostname: 'localhost', port: plain.port });
  socket.destroy();
  assert.equal(address, '127.0.0.1');
  assert.equal((await failureOf(dial({ hostname: 'localhost', port: plain.port }))).kind, 'refused');
  assert.equal((await failureOf(dial({ hostname: 'localhost', port: plain.port }))).kind, 'refused');
});

test('connects to an address without looking it up, and says how long each part took', async () => {
  const dialled = await dialerWith({ lookup: lookupOf().lookup })({
    hostname: '127.0.0.1',
    port: plain.port,
  });
  dialled.socket.destroy();
  assert.equal(dialled.address, '127.0.0.1');
  assert.equal(dialled.timing.dnsMs, null);
  assert.equal(dialled.timing.tlsMs, null);
  assert.ok((dialled.timing.connectMs ?? -1) >= 0);
});

test('looks a name up by the system and connects to one of its addresses', async () => {
  const local = createEgressPolicy({
    egressAllow: '127.0.0.0/8,::1',
    egressPorts: '443',
    ownListeners: () => [],
  });
  const { socket, address, timing } = await dialerWith({ policy: local })({
    hostname: 'localhost',
    port: plain.port,
  });
  socket.destroy();
  assert.equal(address, '127.0.0.1');
  assert.ok((timing.dnsMs ?? -1) >= 0);
});

test('refuses a name when any of its addresses is forbidden, and opens no connection', async () => {
  const opened: string[] = [];
  const decisions: DialDecision[] = [];
  const dial = dialerWith({
    lookup: lookupOf(['127.0.0.1', '10.0.0.1'], ['127.0.0.1', '::1']).lookup,
    openSocket: (address) => {
      opened.push(address);
      return new Socket();
    },
    onDecision: (decision) => decisions.push(decision),
  });
  const failure = await failureOf(dial({ hostname: 'mixed.example', port: plain.port }));
  assert.equal(failure.kind, 'refused');
  assert.equal(failure.message, 'The host has an address that is not permitted');
  assert.equal((await failureOf(dial({ hostname: 'mixed.example', port: plain.port }))).kind, 'refused');
  assert.deepEqual(opened, []);
  assert.deepEqual(decisions[0], {
    outcome: 'refused',
    hostname: 'mixed.example',
    port: plain.port,
    address: '10.0.0.1',
    reason: 'address',
    why: 'private use, 10.0.0.0/8',
  });
});

test('judges a name anew for every connection, and looks it up once for each', async () => {
  const { lookup, asked } = lookupOf(['127.0.0.1'], ['169.254.169.254']);
  const dial = dialerWith({ lookup });
  const { socket } = await dial({ hostname: 'rebinding.example', port: plain.port });
  socket.destroy();
  assert.equal((await failureOf(dial({ hostname: 'rebinding.example', port: plain.port }))).kind, 'refused');
  assert.equal(asked.length, 2);
});

test('shares one lookup among those who ask for a name at the same moment', async () => {
  const { lookup, asked } = lookupOf(['127.0.0.1']);
  const dial = dialerWith({ lookup });
  const dialled = await Promise.all(
    Array.from({ length: 20 }, () => dial({ hostname: 'hooks.example', port: plain.port })),
  );
  for (const { socket } of dialled) socket.destroy();
  assert.deepEqual(asked, ['hooks.example']);
});

test('refuses literals in any form, zones and ports without a lookup', async () => {
  const dial = dialerWith({ lookup: lookupOf().lookup });
  for (const hostname of ['10.0.0.1', '::1', '[::1]', '::ffff:10.0.0.1', 'fe80::1%lo', '64:ff9b::7f00:1']) {
    assert.equal((await failureOf(dial({ hostname, port: 443 }))).kind, 'refused', hostname);
  }
  const failure = await failureOf(dial({ hostname: '8.8.8.8', port: 25 }));
  assert.equal(failure.message, 'Webhooks are not sent to this port (port 25)');
});

test('refuses what only a resolver reads as an address', async () => {
  const dial = dialerWith({
    policy: createEgressPolicy({ egressAllow: '', egressPorts: '443', ownListeners: () => [] }),
  });
  for (const hostname of ['127.1', '0x7f.1', '2130706433']) {
    const { kind } = await failureOf(dial({ hostname, port: 443 }));
    assert.ok(kind === 'refused' || kind === 'dns', `${hostname}: ${kind}`);
  }
});

test('lets no octet through to a peer that is not the address that was judged', async () => {
  const before = other.requests.length;
  const dial = dialerWith({ openSocket: (_address, port) => connect({ host: '127.0.0.2', port }) });
  const failure = await failureOf(dial({ hostname: '127.0.0.1', port: other.port }));
  assert.equal(failure.kind, 'refused');
  assert.equal(other.requests.length, before);
});

test('tries the next address when one refuses, and beside one that is silent', async () => {
  const silent = new Socket();
  const dial = dialerWith({
    lookup: lookupOf(['127.0.0.3', '127.0.0.1'], ['127.0.0.4', '127.0.0.1']).lookup,
    openSocket: (address, port) => (address === '127.0.0.4' ? silent : connect({ host: address, port })),
  });
  for (const hostname of ['refusing.example', 'silent.example']) {
    const { socket, address } = await dial({ hostname, port: plain.port });
    socket.destroy();
    assert.equal(address, '127.0.0.1');
  }
  assert.ok(silent.destroyed);
});

test('tells a name that does not resolve from a server that is not there and from one that is silent', async () => {
  const never = new Promise<readonly string[]>(() => undefined);
  const missing = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
  const call = { hostname: 'hooks.example', port: plain.port };
  const notFound = await failureOf(dialerWith({ lookup: () => Promise.reject(missing) })(call));
  assert.deepEqual([notFound.kind, notFound.message], ['dns', 'The name does not resolve']);
  const late = await failureOf(dialerWith({ lookup: () => never, egressDnsMs: 20 })(call));
  assert.deepEqual([late.kind, late.message], ['dns', 'The lookup of the name timed out']);
  const nothing = await failureOf(dialerWith({ lookup: async () => [] })(call));
  assert.deepEqual([nothing.kind, nothing.message], ['dns', 'The name has no address']);
  const many = Array.from({ length: 257 }, (_, at) => `127.0.${at >> 8}.${at & 255}`);
  assert.equal((await failureOf(dialerWith({ lookup: async () => many })(call))).kind, 'dns');

  const refusing = await failureOf(dialerWith()({ hostname: '127.0.0.5', port: plain.port }));
  assert.deepEqual(
    [refusing.kind, refusing.message],
    ['connect', 'The connection was refused (ECONNREFUSED)'],
  );
  const progress = newProgress();
  const silent = await failureOf(
    dialerWith({ openSocket: () => new Socket(), egressConnectMs: 20 })({
      hostname: '127.0.0.1',
      port: 8,
      progress,
    }),
  );
  assert.deepEqual([silent.kind, progress.phase], ['timeout', 'connect']);
});

test('gives up at once when its caller does, wherever it stands', async () => {
  const stopped = new Error('stopped');
  for (const options of [
    { lookup: () => new Promise<readonly string[]>(() => undefined) },
    { lookup: async () => ['127.0.0.1'], openSocket: () => new Socket() },
  ]) {
    const controller = new AbortController();
    const dialled = dialerWith(options)({ hostname: 'hooks.example', port: 8, signal: controller.signal });
    setImmediate(() => controller.abort(stopped));
    await assert.rejects(dialled, stopped);
  }
  await assert.rejects(
    dialerWith()({ hostname: '127.0.0.1', port: plain.port, signal: AbortSignal.abort(stopped) }),
    stopped,
  );
});

test('verifies the certificate against the name, and chooses the protocol by ALPN', async () => {
  const dial = dialerWith({ lookup: async () => ['127.0.0.1'] });
  for (const hostname of ['localhost', 'localhost.', '127.0.0.1']) {
    const dialled = await dial({ hostname, port: secured.port, tls: { ca: cert, alpn: ['h2', 'http/1.1'] } });
    dialled.socket.destroy();
    assert.equal(dialled.alpnProtocol, 'h2');
    assert.ok((dialled.timing.tlsMs ?? -1) >= 0);
  }
  const wrong = await failureOf(dial({ hostname: 'hooks.example', port: secured.port, tls: { ca: cert } }));
  assert.deepEqual(
    [wrong.kind, wrong.message],
    ['tls', 'The certificate is for another name (ERR_TLS_CERT_ALTNAME_INVALID)'],
  );
});

test('verifies the certificate also where the environment says not to', async () => {
  const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  try {
    const failure = await failureOf(dialerWith()({ hostname: '127.0.0.1', port: secured.port, tls: {} }));
    assert.deepEqual(
      [failure.kind, failure.message],
      ['tls', 'The certificate is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT)'],
    );
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
});

test('tells a server that speaks no TLS, or none in time, from one without a connection', async () => {
  const babbling = await startRawReceiver(() => undefined, {
    onHead: (socket) => socket.write('220 hello\r\n'),
  });
  const call = { hostname: '127.0.0.1', port: babbling.port, tls: { ca: cert } };
  assert.equal((await failureOf(dialerWith()(call))).kind, 'tls');
  await babbling.close();
  const silent = await startRawReceiver(() => undefined, { onHead: () => undefined });
  const late = await failureOf(dialerWith({ egressConnectMs: 50 })({ ...call, port: silent.port }));
  assert.deepEqual([late.kind, late.message], ['timeout', 'The TLS handshake timed out']);
  await silent.close();
});
