/** Who may not have a connect-udp tunnel, and how they are told (§4.10.4 to §4.10.6; RFC 9298 §3, RFC 9209). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Asking,
  type Protocol,
  type ProxyOptions,
  pathTo,
  startEcho,
  startProxy,
  tunneller,
  withoutScope,
} from './proxy-under-test.ts';

const protocols: readonly Protocol[] = ['HTTP/1.1', 'HTTP/2'];
const good = pathTo('127.0.0.1', 9000);

type Row = {
  readonly what: string;
  readonly asking: Asking;
  readonly options?: ProxyOptions;
  readonly status: number;
  readonly code: string;
  /** Of Proxy-Status. */
  readonly error?: string;
  readonly only?: Protocol;
};

const unresolved = async (): Promise<never> => {
  throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
};

const rows: readonly Row[] = [
  ...[
    '/',
    '/.well-known/masque/udp/127.0.0.1/9000',
    '/.well-known/masque/udp/127.0.0.1/0/',
    '/.well-known/masque/udp/fe80%3A%3A1%25lo/9000/',
    '/.well-known/masque/udp/a%20b/9000/',
    '/.well-known/masque/udp/a%2Fb/9000/',
    '/.well-known/masque/udp/user%40a.example/9000/',
    '/.well-known/masque/ip/127.0.0.1/17/',
  ].map((path): Row => {
    return { what: `the target ${path}`, asking: { path }, status: 400, code: 'tunnel_target_invalid' };
  }),
  { what: 'no credential', asking: { credential: '' }, status: 407, code: 'proxy_credentials_required' },
  { what: 'an unknown key', asking: { credential: 'bad' }, status: 407, code: 'proxy_credentials_invalid' },
  {
    what: 'an unknown key in Authorization',
    asking: { credential: '', headers: { Authorization: 'Bearer bad' } },
    status: 407,
    code: 'proxy_credentials_invalid',
  },
  {
    what: 'an unknown key in Proxy-Authorization beside a good one in Authorization',
    asking: { credential: 'bad', headers: { Authorization: `Bearer ${tunneller}` } },
    status: 407,
    code: 'proxy_credentials_invalid',
  },
  { what: 'a key without the scope', asking: { credential: withoutScope }, status: 403, code: 'forbidden' },
  {
    what: 'a port that is not permitted',
    asking: { path: pathTo('127.0.0.1', 53) },
    options: { ports: '443,9000' },
    status: 403,
    code: 'tunnel_port_refused',
  },
  {
    what: 'a host that the list does not let through',
    asking: { path: pathTo('A.Example.', 9000) },
    options: { hosts: [{ mode: 'enforce', allow: null, deny: ['a.example'] }] },
    status: 403,
    code: 'tunnel_host_refused',
  },
  ...[
    ...['127.0.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0', '①②⑦.0.0.1', 'localhost.'],
    ...['::1', '::', '::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '2001:0:7f00:1::', '::7f00:1'],
    ...[
      '169.254.169.254',
      'fd00:ec2::254',
      '10.0.0.1',
      '100.64.0.1',
      '224.0.0.251',
      '255.255.255.255',
      'ff02::fb',
    ],
  ].map((host): Row => {
    const what = `the address ${host}`;
    const [options, asking] = [{ egressAllow: '' }, { path: pathTo(host, 9000) }];
    const error = 'destination_ip_prohibited';
    return { what, asking, options, status: 403, code: 'tunnel_address_refused', error };
  }),
  {
    what: 'a name of which one address is private',
    asking: { path: pathTo('mixed.example', 9000) },
    options: { egressAllow: '', lookup: async () => ['192.0.43.7', '10.0.0.1'] },
    status: 403,
    code: 'tunnel_address_refused',
    error: 'destination_ip_prohibited',
  },
  {
    what: 'a name that does not resolve',
    asking: { path: pathTo('nowhere.example', 9000) },
    options: { lookup: unresolved },
    status: 502,
    code: 'destination_failed',
    error: 'dns_error',
  },
  {
    what: 'a name that does not resolve in time',
    asking: { path: pathTo('slow.example', 9000) },
    options: { lookup: () => new Promise(() => undefined), dnsMs: 20 },
    status: 504,
    code: 'destination_timeout',
    error: 'dns_timeout',
  },
  {
    what: 'a tunnel too many',
    asking: {},
    options: { tunnelsMax: 0 },
    status: 503,
    code: 'unavailable',
    error: 'connection_limit_reached',
  },
  {
    what: 'content',
    asking: { headers: { 'Content-Length': '5' } },
    status: 400,
    code: 'content_unexpected',
    only: 'HTTP/2',
  },
  {
    what: 'an extended CONNECT for connect-ip',
    asking: { protocol: 'connect-ip' },
    status: 400,
    code: 'handshake_invalid',
    only: 'HTTP/2',
  },
];

for (const row of rows) {
  for (const protocol of protocols) {
    if (row.only !== undefined && row.only !== protocol) continue;
    test(`answers ${row.status} ${row.code} over ${protocol} to ${row.what}`, async (t) => {
      await expectRefusal(t, protocol, row);
    });
  }
}

async function expectRefusal(t: TestContext, protocol: Protocol, row: Row): Promise<void> {
  const proxy = await startProxy(t, row.options);
  const { status, headers, body } = await proxy.ask(protocol, { path: good, ...row.asking });
  assert.equal(status, row.status, body);
  assert.equal(JSON.parse(body).code, row.code);
  assert.match(
    String(headers['proxy-status']),
    new RegExp(`^comity; error=${row.error ?? '[a-z_]+'}; details="`),
  );
  assert.equal(headers['capsule-protocol'], undefined);
  assert.equal(headers['proxy-authenticate'] !== undefined, row.status === 407);
  assert.equal(headers['retry-after'] !== undefined, row.status === 503);
  const facts = proxy.facts.filter(({ kind }) => kind.startsWith('tunnel-'));
  assert.equal(facts.length, 1, JSON.stringify(facts));
  const [fact] = facts;
  assert.ok(fact?.kind === 'tunnel-refused');
  assert.equal(fact.how, 'udp');
  assert.equal(fact.status, row.status);
  assert.equal(fact.code, row.code);
  assert.equal(proxy.desk.count(), 0, 'the place was given back');
}

for (const protocol of protocols) {
  test(`reaches no listener of the program itself over ${protocol}`, async (t) => {
    const proxy = await startProxy(t);
    for (const port of proxy.ports) {
      for (const host of ['127.0.0.1', 'localhost', '::ffff:127.0.0.1']) {
        const { status, body } = await proxy.ask(protocol, { path: pathTo(host, port) });
        assert.equal(status, 403, `${host} ${body}`);
        assert.equal(JSON.parse(body).code, 'tunnel_address_refused');
      }
    }
  });

  test(`takes the credential of Authorization over ${protocol}, where Proxy-Authorization is missing`, async (t) => {
    const [proxy, echo] = await Promise.all([startProxy(t), startEcho()]);
    t.after(() => void echo.socket.close());
    const headers = { Authorization: `Bearer ${tunneller}` };
    const { tunnel } = await proxy.ask(protocol, {
      credential: '',
      headers,
      path: pathTo('127.0.0.1', echo.port),
    });
    tunnel.send('let in');
    assert.equal(String(await tunnel.next()), 'let in');
    tunnel.duplex.destroy();
  });

  test(`sends to the address that was judged, over ${protocol}, whatever the name says the next time`, async (t) => {
    const answers = [['127.0.0.1'], ['10.0.0.1']];
    const lookup = async (): Promise<readonly string[]> => answers.shift() ?? [];
    const [proxy, echo] = await Promise.all([startProxy(t, { lookup }), startEcho()]);
    t.after(() => void echo.socket.close());
    const path = pathTo('rebinding.example', echo.port);
    const { tunnel } = await proxy.ask(protocol, { path });
    tunnel.send('once');
    assert.equal(String(await tunnel.next()), 'once');
    assert.equal((await proxy.ask(protocol, { path })).status, 403);
    tunnel.duplex.destroy();
  });

  test(`drains over ${protocol}: open tunnels until the bound, new ones 503`, async (t) => {
    const [proxy, echo] = await Promise.all([startProxy(t), startEcho()]);
    t.after(() => void echo.socket.close());
    const path = pathTo('127.0.0.1', echo.port);
    const { tunnel } = await proxy.ask(protocol, { path });
    // Time for what comes before the end of the drain, on a busy machine too.
    const drained = proxy.desk.drain(1000);
    tunnel.send('still');
    assert.equal(String(await tunnel.next()), 'still');
    assert.equal((await proxy.ask(protocol, { path })).status, 503);
    await drained;
    assert.equal((await proxy.closed()).why, 'drained');
    assert.equal(proxy.desk.count(), 0);
    tunnel.duplex.destroy();
  });
}

test('opens nothing for a client that left while the name was looked up', async (t) => {
  const asked = Promise.withResolvers<void>();
  const found = Promise.withResolvers<readonly string[]>();
  const lookup = (): Promise<readonly string[]> => {
    asked.resolve();
    return found.promise;
  };
  const proxy = await startProxy(t, { lookup });
  const leaving = new AbortController();
  const answered = proxy.ask('HTTP/2', { path: pathTo('slow.example', 9000), signal: leaving.signal });
  await asked.promise;
  assert.equal(proxy.desk.count(), 1);
  leaving.abort();
  await assert.rejects(answered);
  while (proxy.desk.count() > 0) await nextTurn();
  found.resolve(['127.0.0.1']);
  assert.deepEqual(proxy.facts, []);
});

test('gives back socket and place when the client was gone before the answer', async (t) => {
  const [proxy, echo] = await Promise.all([startProxy(t), startEcho()]);
  t.after(() => void echo.socket.close());
  const signal = new AbortController().signal;
  const reply = await proxy.udp({ request: proxy.request(pathTo('127.0.0.1', echo.port)), signal });
  assert.ok('abandon' in reply);
  assert.equal(proxy.desk.count(), 1);
  const before = openUdpSockets();
  reply.abandon();
  assert.equal(proxy.desk.count(), 0);
  while (openUdpSockets() >= before) await nextTurn();
  assert.deepEqual(proxy.facts, [], 'nothing was opened, and nobody refused');
});

// What node:http's client does not send.
for (const [what, head, code] of [
  [
    'two Hosts',
    'GET PATH HTTP/1.1\r\nHost: a\r\nHost: b\r\nUpgrade: connect-udp\r\nConnection: upgrade',
    'host_invalid',
  ],
  [
    'no valid Host',
    'GET PATH HTTP/1.1\r\nHost: a b\r\nUpgrade: connect-udp\r\nConnection: upgrade',
    'host_invalid',
  ],
  [
    'POST',
    'POST PATH HTTP/1.1\r\nHost: a\r\nUpgrade: connect-udp\r\nConnection: upgrade',
    'handshake_invalid',
  ],
  [
    'HTTP/1.0',
    'GET PATH HTTP/1.0\r\nHost: a\r\nUpgrade: connect-udp\r\nConnection: upgrade',
    'handshake_invalid',
  ],
  [
    'another protocol',
    'GET PATH HTTP/1.1\r\nHost: a\r\nUpgrade: connect-ip\r\nConnection: upgrade',
    'handshake_invalid',
  ],
  [
    'an empty content',
    'GET PATH HTTP/1.1\r\nHost: a\r\nUpgrade: connect-udp\r\nConnection: upgrade\r\nContent-Length: 0',
    'content_unexpected',
  ],
] as const) {
  test(`refuses an Upgrade with ${what}`, async (t) => {
    const proxy = await startProxy(t);
    const socket = connect(proxy.ports[0] ?? 0, '127.0.0.1');
    socket.end(`${head.replace('PATH', good)}\r\nProxy-Authorization: Bearer ${tunneller}\r\n\r\n`);
    const answer = Buffer.concat(await socket.toArray()).toString();
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.ok(answer.includes(`"code":"${code}"`), answer);
    if (!socket.destroyed) await once(socket, 'close');
  });
}

test('refuses an absolute target that names another server, whatever its scheme is spelled like', async (t) => {
  const proxy = await startProxy(t);
  for (const scheme of ['http', 'HTTP']) {
    const { status, body } = await proxy.ask('HTTP/1.1', { path: `${scheme}://other.example${good}` });
    assert.equal(status, 400);
    assert.match(body, /names another server/);
  }
});

test('takes an absolute target, and lists of Upgrade and Connection in any case', async (t) => {
  const [proxy, echo] = await Promise.all([startProxy(t), startEcho()]);
  t.after(() => void echo.socket.close());
  const { status, tunnel } = await proxy.ask('HTTP/1.1', {
    path: `https://proxy.example${pathTo('127.0.0.1', echo.port)}`,
    headers: { Upgrade: 'other, Connect-UDP', Connection: 'keep-alive, UPGRADE' },
  });
  assert.equal(status, 101);
  tunnel.send('absolute');
  assert.equal(String(await tunnel.next()), 'absolute');
  tunnel.duplex.destroy();
});

test('leaves 200 tunnels that opened and closed without a trace', async (t) => {
  const [proxy, echo] = await Promise.all([startProxy(t), startEcho()]);
  t.after(() => void echo.socket.close());
  const before = openUdpSockets();
  for (let round = 0; round < 20; round += 1) {
    const asked = protocols.flatMap((protocol) =>
      Array.from({ length: 5 }, () => proxy.ask(protocol, { path: pathTo('127.0.0.1', echo.port) })),
    );
    const tunnels = (await Promise.all(asked)).map(({ tunnel }) => tunnel);
    for (const [at, tunnel] of tunnels.entries()) {
      tunnel.send('x');
      await tunnel.next();
      if (at % 2 === 0) tunnel.duplex.end();
      else tunnel.duplex.destroy();
    }
    await Promise.all(tunnels.map((tunnel) => tunnel.gone));
  }
  while (proxy.desk.count() > 0) await nextTurn();
  assert.equal(proxy.facts.filter(({ kind }) => kind === 'tunnel-opened').length, 200);
  assert.equal(proxy.facts.filter(({ kind }) => kind === 'tunnel-closed').length, 200);
  while (openUdpSockets() > before) await nextTurn();
});

function openUdpSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name.startsWith('UDP')).length;
}
