/** Requests for other servers, forwarded (§4.10; RFC 9110 §7.6). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Readable, type Writable } from 'node:stream';
import { test } from 'node:test';
import { request as ask, ProxyAgent } from 'undici';
import type { HostRules } from '../../../src/model/host-rules.ts';
import { credential, stage } from './scene.ts';

/** Fields of a message as the destination saw them, each `name: value`. */
function seen({ rawHeaders }: IncomingMessage): readonly string[] {
  return rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
}

function send(to: string, fields = credential, method = 'GET', path = '/'): string {
  return `${method} http://${to}${path} HTTP/1.1\r\nHost: ${to}\r\n${fields}\r\n`;
}

test('forwards a request with absolute-form, and serves its own as ever', async (context) => {
  const scene = await stage(context);
  const to = await scene.destination((incoming, outgoing) => {
    outgoing.setHeader('Set-Cookie', ['a=1', 'b=2']);
    outgoing.end(`${incoming.method} ${incoming.url} ${seen(incoming).join('|')}`);
  });
  const client = await scene.open();
  client.send(
    `GET http://${to}/a%20b?q=1 HTTP/1.1\r\nHost: elsewhere.example\r\nX-A: 1\r\nAuthorization: Bearer theirs\r\n${credential}\r\n`,
  );
  const text = await client.until(`Connection: close`);
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.ok(text.includes('Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n'), text);
  assert.ok(text.includes('Via: 1.1 comity\r\n'));
  assert.ok(!text.includes('Proxy-Authorization'));
  assert.ok(
    text.endsWith(
      `GET /a%20b?q=1 Host: ${to}|X-A: 1|Authorization: Bearer theirs|Via: 1.1 comity|Connection: close`,
    ),
    text,
  );
  for (const own of [
    `127.0.0.1:${scene.port}`,
    `localhost:${scene.port}`,
    `[::1]:${scene.port}`,
    `LOCALHOST.:${scene.port}`,
  ]) {
    client.send(`GET http://${own}/x HTTP/1.1\r\nHost: ${own}\r\n\r\n`);
    assert.equal((await client.answer()).body, `local http://${own}/x`);
  }
  client.send('GET https://API.shop.example/x HTTP/1.1\r\nHost: api.shop.example\r\n\r\n');
  assert.match((await client.answer()).body, /^local/);
  client.send(`TRACE http://${to}/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n`);
  assert.match((await client.answer()).body, /^local/);
});

test('tells a forwarded request as opened and closed, with its octets in both directions', async (context) => {
  const scene = await stage(context);
  const to = await scene.destination((_incoming, outgoing) => outgoing.end('x'.repeat(1000)));
  const client = await scene.open();
  client.send(send(to));
  assert.equal((await client.answer()).body.length, 1000);
  const closed = await scene.fact('tunnel-closed');
  const { how, why, host, port, address, principal } = closed;
  assert.deepEqual(
    [how, why, `${host}:${port}`, address, principal],
    ['forward', 'ended', to, '127.0.0.1', 'usr_a'],
  );
  assert.ok(closed.receivedBytes > 1000 && closed.receivedBytes < 1400);
  assert.ok(closed.sentBytes > 50 && closed.sentBytes < 300);
  assert.deepEqual(
    scene.observed.map(({ kind }) => kind),
    ['tunnel-opened', 'tunnel-closed'],
  );
  assert.equal(scene.desk.count(), 0);
});

test('streams content both ways: 50 MB up and down, for a client that uses it as its proxy', async (context) => {
  const scene = await stage(context);
  const size = 50_000_000;
  const to = await scene.destination((incoming, outgoing) => {
    outgoing.writeHead(200, { 'Content-Length': size });
    incoming.pipe(outgoing);
  });
  const uri = `http://127.0.0.1:${scene.port}`;
  const agent = new ProxyAgent({ uri, token: 'Bearer good', proxyTunnel: false });
  context.after(() => agent.close());
  const piece = Buffer.alloc(100_000, 'x');
  const content = Readable.from(Array.from({ length: size / piece.length }, () => piece));
  const { body, headers } = await ask(`http://${to}/`, { method: 'POST', dispatcher: agent, body: content });
  assert.equal(headers['content-length'], String(size));
  let received = 0;
  for await (const chunk of body) received += (chunk as Buffer).length;
  assert.equal(received, size);
});

/** Writes until nobody takes more for a while: the buffers of the sockets between are full then. Resolves with the octets that were taken. */
async function fill(sink: Writable): Promise<number> {
  const piece = Buffer.alloc(65_536);
  let taken = 0;
  for (;;) {
    const moved = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), 300);
      sink.write(piece, () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
    if (!moved) return taken;
    taken += piece.length;
    // Four sockets and the streams between take about 6 MB here; what holds everything takes all of it.
    if (taken > 60_000_000) return taken;
  }
}

test('reads no more of an answer than its client takes', async (context) => {
  const scene = await stage(context);
  const taken = Promise.withResolvers<number>();
  const to = await scene.destination((_incoming, outgoing) => {
    fill(outgoing).then(taken.resolve, taken.reject);
  });
  const client = await scene.open();
  client.socket.pause();
  client.send(send(to));
  assert.ok((await taken.promise) < 30_000_000);
  client.destroy();
  assert.equal((await scene.fact('tunnel-closed')).why, 'client-reset');
});

test('reads no more of the content of a request than its destination takes, and waits for it no longer than it may', async (context) => {
  const scene = await stage(context, { limits: { tunnelAnswerMs: 700 } });
  const to = await scene.rawDestination((socket) => socket.pause());
  const client = await scene.open();
  client.send(send(to, `${credential}Content-Length: 1000000000\r\n`, 'POST'));
  assert.ok((await fill(client.socket)) < 30_000_000);
  assert.equal((await client.answer()).status, 504);
  assert.equal((await scene.fact('tunnel-closed')).why, 'idle');
});

test('passes 1xx on, and the expectation of 100', async (context) => {
  const scene = await stage(context);
  const to = await scene.rawDestination(async (socket) => {
    const [head] = (await once(socket, 'data')) as [Buffer];
    assert.match(head.toString(), /\r\nExpect: 100-continue\r\n/);
    assert.ok(!head.includes('hello'));
    socket.write(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nConnection: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
    );
    const [content] = (await once(socket, 'data')) as [Buffer];
    socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n${content}`);
  });
  const client = await scene.open();
  client.send(send(to, `${credential}Content-Length: 5\r\nExpect: 100-continue\r\n`, 'POST'));
  const early = await client.answer();
  assert.deepEqual(
    [early.status, early.fields.get('link'), early.fields.get('connection')],
    [103, '</a>; rel=preload', undefined],
  );
  assert.equal((await client.answer()).status, 100);
  client.send('hello');
  assert.equal((await client.answer()).body, 'hello');
});

test('passes on answers without content: to HEAD, 204 and 304', async (context) => {
  const scene = await stage(context);
  const to = await scene.rawDestination((socket) => {
    socket.once('data', (head: Buffer) => {
      const [status, length] = head.includes('/204') ? [204, 7] : head.includes('/304') ? [304, 8] : [200, 9];
      socket.end(`HTTP/1.1 ${status} X\r\nContent-Length: ${length}\r\nETag: "x"\r\n\r\n`);
    });
  });
  const client = await scene.open();
  client.send(send(to, credential, 'HEAD', '/'));
  const head = await client.answer({ headOnly: true });
  assert.deepEqual(
    [head.status, head.fields.get('content-length'), head.fields.get('etag')],
    [200, '9', '"x"'],
  );
  client.send(send(to, credential, 'GET', '/204'));
  const none = await client.answer();
  assert.deepEqual([none.status, none.fields.get('content-length')], [204, undefined]);
  client.send(send(to, credential, 'GET', '/304'));
  const same = await client.answer();
  assert.deepEqual([same.status, same.fields.get('content-length')], [304, '8']);
});

test('frames an answer without a length itself, and drops trailers', async (context) => {
  const scene = await stage(context);
  const to = await scene.rawDestination((socket) => {
    socket.once('data', (head: Buffer) => {
      const chunked =
        'HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n';
      socket.end(head.includes('/chunked') ? chunked : 'HTTP/1.0 200 OK\r\nKeep-Alive: x\r\n\r\nabc');
    });
  });
  const client = await scene.open();
  for (const [path, via] of [
    ['/chunked', '1.1 comity'],
    ['/closed', '1.0 comity'],
  ] as const) {
    client.send(send(to, credential, 'GET', path));
    const { body, fields } = await client.answer();
    assert.equal(body, 'abc');
    assert.deepEqual(
      [fields.get('trailer'), fields.get('x-t'), fields.get('via')],
      [undefined, undefined, via],
    );
  }
});

const lists: readonly HostRules[] = [{ mode: 'enforce', allow: ['127.0.0.1'], deny: [], name: 'others' }];

test('refuses as the tunnel does, with the reason', async (context) => {
  const scene = await stage(context, { hostsOf: () => lists, settings: { tunnelPorts: '1024-65535' } });
  const dead = await scene.rawDestination((socket) => socket.resetAndDestroy());
  const cases: readonly (readonly [request: string, status: number, code: string])[] = [
    [send(dead, ''), 407, 'proxy_credentials_required'],
    [send(dead, 'Proxy-Authorization: Bearer bad\r\n'), 407, 'proxy_credentials_invalid'],
    [send('127.0.0.1:80'), 403, 'tunnel_port_refused'],
    [send('a.example:8080'), 403, 'tunnel_host_refused'],
    [send(dead), 502, 'destination_failed'],
    [send('127.0.0.1:0'), 400, 'tunnel_target_invalid'],
    [send('a%62.example:8080'), 400, 'tunnel_target_invalid'],
    [`GET https://127.0.0.1:8443/ HTTP/1.1\r\nHost: a\r\n${credential}\r\n`, 400, 'tunnel_target_invalid'],
    [`GET http://${dead}/ HTTP/1.1\r\n${credential}\r\n`, 400, 'host_invalid'],
    [`GET http://${dead}/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n${credential}\r\n`, 400, 'host_invalid'],
    [send(dead, `${credential}Connection: a b\r\n`), 400, 'field_invalid'],
    [send(dead, `${credential}Expect: something\r\n`), 417, 'expectation_failed'],
  ];
  for (const [request, status, code] of cases) {
    const client = await scene.open();
    client.send(request);
    const answer = await client.answer();
    const body = JSON.parse(answer.body) as { code: string; error: string };
    assert.deepEqual([answer.status, body.code], [status, code], request);
    assert.match(answer.fields.get('proxy-status') ?? '', /^comity; error=[a-z_]+; details="/);
    assert.equal(answer.fields.get('proxy-authenticate') !== undefined, status === 407);
    if (request.includes('https:')) assert.match(body.error, /CONNECT/);
    client.destroy();
  }
  assert.equal(scene.observed.filter(({ kind }) => kind === 'tunnel-refused').length, cases.length);
  assert.equal(scene.desk.count(), 0);
});

test('reaches no private address and no name behind which one lies', async (context) => {
  const scene = await stage(context, { egressAllow: '' });
  for (const to of [
    '127.0.0.1:8080',
    'inner.example:8080',
    '2130706433:8080',
    '[::ffff:127.0.0.1]:8080',
    '0x7f.1:8080',
  ]) {
    const client = await scene.open();
    client.send(send(to));
    const { status, body } = await client.answer();
    assert.deepEqual([status, JSON.parse(body).code], [403, 'tunnel_address_refused'], to);
  }
});

test('refuses callers without the scope, over the budget, and all of them once it stops', async (context) => {
  const without = await stage(context, { scopes: [] });
  const client = await without.open();
  client.send(send('127.0.0.1:8080'));
  assert.equal((await client.answer()).status, 403);
  const scene = await stage(context, { settings: { tunnelsPerPrincipalMax: 1 } });
  const to = await scene.rawDestination(() => undefined);
  const [first, second] = [await scene.open(), await scene.open()];
  first.send(send(to));
  await scene.fact('tunnel-opened');
  second.send(send(to));
  const refused = await second.answer();
  assert.deepEqual([refused.status, JSON.parse(refused.body).code], [429, 'tunnels_exhausted']);
  const drained = scene.desk.drain(1);
  assert.equal((await first.answer()).status, 503);
  await drained;
  assert.equal((await scene.fact('tunnel-closed')).why, 'drained');
  second.send(send(to));
  assert.equal((await second.answer()).status, 503);
});

const brokenAnswers: readonly (readonly [what: string, answer: string])[] = [
  ['nothing', ''],
  ['half a header section', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['what is no HTTP', 'SSH-2.0-OpenSSH_9\r\n'],
  [
    'Content-Length beside Transfer-Encoding',
    'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [
    'Transfer-Encoding beside Content-Length',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n',
  ],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
  ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\nabc'],
  ['a folded field', 'HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n'],
  ['bare line feeds', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
  [
    '101 that nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  ],
  [
    '407, as a proxy would',
    'HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n',
  ],
  ['a status that is none', 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n'],
  ['a header section without end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`],
];

test('answers 502 where the destination answers with what cannot be passed on', async (context) => {
  const scene = await stage(context);
  let answer = '';
  const to = await scene.rawDestination((socket) => socket.once('data', () => socket.end(answer)));
  for (const [what, octets] of brokenAnswers) {
    answer = octets;
    const client = await scene.open();
    client.send(send(to));
    const { status, body, fields } = await client.answer();
    assert.deepEqual([status, JSON.parse(body).code], [502, 'destination_failed'], what);
    assert.match(fields.get('proxy-status') ?? '', /error=http_(?:protocol_error|response_incomplete)/, what);
    client.destroy();
  }
  assert.equal(scene.desk.count(), 0);
});

test('breaks an answer off where the destination does', async (context) => {
  const scene = await stage(context);
  let answer = '';
  const to = await scene.rawDestination((socket) => socket.once('data', () => socket.end(answer)));
  for (const octets of [
    'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
  ]) {
    answer = octets;
    const client = await scene.open();
    client.send(send(to));
    await client.until('abc');
    await client.closed;
    assert.ok(!client.received.includes('0\r\n\r\n'), 'no end is said');
  }
  assert.equal((await scene.fact('tunnel-closed')).why, 'destination-reset');
});

test('answers 504 where no answer comes in its time, and ends one that stands still', async (context) => {
  const scene = await stage(context, { limits: { tunnelAnswerMs: 60, tunnelIdleMs: 90 } });
  const silent = await scene.rawDestination(() => undefined);
  const stopping = await scene.rawDestination((socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'));
  });
  const client = await scene.open();
  client.send(send(silent));
  const { status, fields } = await client.answer();
  assert.equal(status, 504);
  assert.match(fields.get('proxy-status') ?? '', /error=http_response_timeout/);
  client.send(send(stopping));
  await client.until('abc');
  await client.closed;
  assert.deepEqual(
    scene.observed.flatMap((fact) => (fact.kind === 'tunnel-closed' ? [fact.why] : [])),
    ['idle', 'idle'],
  );
});

test('closes the connection to the destination when the client goes, before the answer and within it', async (context) => {
  const scene = await stage(context);
  for (const answer of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc']) {
    let closed: Promise<unknown> | undefined;
    const got = Promise.withResolvers<void>();
    const to = await scene.rawDestination((socket) => {
      closed = once(socket, 'close');
      socket.resume();
      socket.once('data', () => {
        socket.write(answer);
        got.resolve();
      });
    });
    const client = await scene.open();
    client.send(send(to));
    await got.promise;
    if (answer !== '') await client.until('abc');
    client.destroy();
    await closed;
  }
  assert.equal((await scene.fact('tunnel-closed')).why, 'client-reset');
});

test('sends half of a request to nobody as a whole one', async (context) => {
  const scene = await stage(context);
  const ended = Promise.withResolvers<boolean>();
  const to = await scene.destination((incoming) => {
    incoming.on('error', () => undefined);
    incoming.on('close', () => ended.resolve(incoming.complete));
    incoming.resume();
  });
  const client = await scene.open();
  client.send(`${send(to, `${credential}Transfer-Encoding: chunked\r\n`, 'POST')}3\r\nabc\r\n`);
  await scene.fact('tunnel-opened');
  client.destroy();
  assert.equal(await ended.promise, false);
});

test('cuts what runs when the credential ends, and when the daily limit of tunnelled octets is reached', async (context) => {
  const scene = await stage(context);
  const to = await scene.rawDestination((socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'));
  });
  const client = await scene.open();
  client.send(send(to));
  await client.until('abc');
  scene.revoke();
  await client.closed;
  assert.equal((await scene.fact('tunnel-closed')).why, 'revoked');
  const limited = await stage(context, { settings: { tunnelBytesPerDayMax: 100_000 } });
  const large = await limited.destination((_incoming, outgoing) => outgoing.end(Buffer.alloc(10_000_000)));
  const other = await limited.open();
  other.send(send(large));
  await other.closed;
  assert.ok(other.received.length < 2_000_000);
  assert.equal((await limited.fact('tunnel-closed')).why, 'bytes');
  const again = await limited.open();
  again.send(send(large));
  const { status, body } = await again.answer();
  assert.deepEqual([status, JSON.parse(body).code], [429, 'tunnel_bytes_exhausted']);
});

test('an early answer arrives though content is still coming, and the next request is not taken for content', async (context) => {
  const scene = await stage(context);
  const to = await scene.rawDestination((socket) => {
    socket.once('data', () => socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno'));
  });
  const client = await scene.open();
  client.send(`${send(to, `${credential}Content-Length: 1000000\r\n`, 'POST')}${'x'.repeat(1000)}`);
  const { status, body, fields } = await client.answer();
  assert.deepEqual([status, body, fields.get('connection')], [413, 'no', 'close']);
});

test('reports what a list in the mode report would refuse, and forwards it', async (context) => {
  const reporting: HostRules = { mode: 'report', allow: [], deny: [], name: 'trial' };
  const scene = await stage(context, { hostsOf: () => [reporting] });
  const to = await scene.destination((_incoming, outgoing) => outgoing.end('ok'));
  const client = await scene.open();
  client.send(send(to));
  assert.equal((await client.answer()).body, 'ok');
  assert.equal((await scene.fact('tunnel-reported')).why, 'trial does not allow it');
});
