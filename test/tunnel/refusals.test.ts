/** Refusals of the tunnel (§4.10, rules 1, 4 to 6): status, reason, challenge, Proxy-Status, and one fact each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DialFailure } from '../../src/egress/dial-failure.ts';
import { plantKey } from '../accounts/keys/planted.ts';
import {
  type Answer,
  adminKey,
  basic,
  openStand,
  type Rig,
  sendConnect,
  startDestination,
  startRig,
} from './rig.ts';

const stand = await openStand();

type TestContext = Parameters<typeof startRig>[0];

async function ask(
  context: TestContext,
  rig: Rig,
  target: string,
  fields?: readonly string[],
): Promise<Answer> {
  const given = fields ?? [`Proxy-Authorization: Bearer ${rig.key}`];
  const { socket, answer } = await sendConnect(context, rig.port, target, { fields: given });
  socket.destroy();
  return answer;
}

function codeOf({ rest }: Answer): string {
  return String((JSON.parse(rest) as { code: unknown }).code);
}

const open = '127.0.0.1:9';
const credentials: readonly (readonly [
  what: string,
  fields: readonly string[],
  status: number,
  code: string,
])[] = [
  ['no credential', [], 407, 'proxy_credentials_required'],
  ['a bad token', ['Proxy-Authorization: Bearer nope'], 407, 'proxy_credentials_invalid'],
  ['an unknown key', ['Proxy-Authorization: Bearer sk_test_unknown'], 407, 'proxy_credentials_invalid'],
  [
    'a wrong password',
    [`Proxy-Authorization: ${basic('ann@x.example', 'no')}`],
    407,
    'proxy_credentials_invalid',
  ],
  ['an unreadable Basic', ['Proxy-Authorization: Basic %%%'], 407, 'proxy_credentials_invalid'],
  ['another scheme', ['Proxy-Authorization: Negotiate abc'], 407, 'proxy_credentials_invalid'],
  [
    'two credentials',
    ['Proxy-Authorization: Bearer a', 'Proxy-Authorization: Bearer b'],
    400,
    'field_invalid',
  ],
  [
    'guessing too often',
    [`Proxy-Authorization: ${basic('ann@x.example', 'too often')}`],
    429,
    'rate_limited',
  ],
  ['credentials that cannot be judged', ['Proxy-Authorization: Bearer eyJ.unavailable'], 503, 'unavailable'],
];

for (const [what, fields, status, code] of credentials) {
  test(`answers ${what} with ${status} ${code}`, async (context) => {
    const rig = await startRig(context, stand);
    const answer = await ask(context, rig, open, fields);
    assert.deepEqual([answer.status, codeOf(answer)], [status, code]);
    assert.equal(
      answer.fields.get('proxy-authenticate') ?? '',
      status !== 407
        ? ''
        : `Basic realm="comity", charset="UTF-8", Bearer realm="comity"${
            fields[0]?.includes('Bearer') || fields[0]?.includes('Negotiate') ? ', error="invalid_token"' : ''
          }`,
    );
    assert.match(answer.fields.get('proxy-status') ?? '', /^comity; error=[a-z_]+; details="[^"]+"$/);
    assert.equal(rig.facts.length, 1);
    const fact = await rig.told('tunnel-refused');
    assert.deepEqual([fact.status, fact.code, fact.principal], [status, code, undefined]);
    assert.deepEqual([fact.host, fact.port, fact.how, fact.peer], ['127.0.0.1', 9, 'connect', '127.0.0.1']);
    assert.equal(rig.proxy.count(), 0);
  });
}

test('says when to guess again', async (context) => {
  const rig = await startRig(context, stand);
  const { fields } = await ask(context, rig, open, [
    `Proxy-Authorization: ${basic('a@x.example', 'too often')}`,
  ]);
  assert.equal(fields.get('retry-after'), '9');
});

test('says that Authorization is the wrong field', async (context) => {
  const rig = await startRig(context, stand);
  const answer = await ask(context, rig, open, [`Authorization: Bearer ${rig.key}`]);
  assert.equal(answer.status, 407);
  assert.match(answer.rest, /proxy credentials go into Proxy-Authorization, not Authorization/);
});

test('takes a key as a bearer token, as the user name of Basic, and the administrator key', async (context) => {
  const rig = await startRig(context, stand);
  const port = await startDestination(context, (socket) => void socket.end());
  for (const credential of [`Bearer ${rig.key}`, basic(rig.key, ''), `Bearer ${adminKey}`]) {
    const answer = await ask(context, rig, `127.0.0.1:${port}`, [`Proxy-Authorization: ${credential}`]);
    assert.equal(answer.status, 200, credential);
  }
});

test('refuses a key without the scope, and says whose it is', async (context) => {
  const rig = await startRig(context, stand);
  const { text } = await plantKey(stand.store, { id: 'key_reads', scopes: ['read', 'write'] });
  const answer = await ask(context, rig, open, [`Proxy-Authorization: Bearer ${text}`]);
  assert.deepEqual([answer.status, codeOf(answer)], [403, 'forbidden']);
  assert.equal((await rig.told('tunnel-refused')).principal, 'key_reads');
});

test('refuses ports that are not on the list, also of addresses that are let through', async (context) => {
  const rig = await startRig(context, stand, { settings: { tunnelPorts: '443,8000-8999' } });
  for (const port of [442, 444, 7999, 9000, 25]) {
    const answer = await ask(context, rig, `127.0.0.1:${port}`);
    assert.deepEqual([answer.status, codeOf(answer)], [403, 'tunnel_port_refused'], String(port));
  }
  assert.equal((await ask(context, rig, '127.0.0.1:443')).status, 502);
  assert.equal((await ask(context, rig, '127.0.0.1:8999')).status, 502);
});

test('refuses hosts by an enforced list, and keeps why for the log', async (context) => {
  const hosts = [{ mode: 'enforce', allow: ['*.example.com'], deny: ['bad.example.com'] }] as const;
  const rig = await startRig(context, stand, { hosts, lookup: async () => ['127.0.0.1'] });
  for (const host of ['example.com', 'BAD.example.com.', '127.0.0.1', 'xexample.com']) {
    const answer = await ask(context, rig, `${host}:9`);
    assert.deepEqual([answer.status, codeOf(answer)], [403, 'tunnel_host_refused'], host);
    assert.doesNotMatch(answer.rest, /list/);
  }
  assert.match((await rig.told('tunnel-refused')).why, /list/);
  assert.equal((await ask(context, rig, 'Good.Example.COM.:9')).status, 502);
});

test('opens what a list only reports, and tells it once', async (context) => {
  const port = await startDestination(context, (socket) => void socket.end());
  const hosts = [{ mode: 'report', allow: [], deny: [] }] as const;
  const rig = await startRig(context, stand, { hosts });
  assert.equal((await ask(context, rig, `127.0.0.1:${port}`)).status, 200);
  const { principal, host, how } = await rig.told('tunnel-reported');
  assert.deepEqual([principal, host, how], ['key_tunnel', '127.0.0.1', 'connect']);
  assert.equal(rig.factsOf('tunnel-reported').length, 1);
});

const targets = [
  ...['/x', 'example.com', 'example.com:', 'example.com:0', 'example.com:65536', 'example.com:0443', ':443'],
  ...[
    'u:p@example.com:443',
    'http://example.com:443',
    'example.com:443/x',
    '[fe80::1%25eth0]:443',
    '::1:443',
  ],
  ...[
    'ex%61mple.com:443',
    'example..com:443',
    '.:443',
    '[::1:443',
    '[]:443',
    'a_b*.com:443',
    'example.com:+443',
  ],
];

for (const target of targets) {
  test(`answers the target ${target} with 400`, async (context) => {
    const rig = await startRig(context, stand);
    const answer = await ask(context, rig, target, []);
    assert.deepEqual([answer.status, codeOf(answer)], [400, 'tunnel_target_invalid']);
    assert.equal(rig.factsOf('tunnel-refused').length, 1);
  });
}

const inward = [
  ...['127.0.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.1', '0x7f.1', '127.0.0.1.', '0', '0.0.0.0'],
  ...[
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[::7f00:1]',
  ],
  ...[
    'localhost',
    'localhost.',
    'LOCALHOST',
    'a.localhost',
    '169.254.169.254',
    '0xa9fea9fe',
    '[fd00:ec2::254]',
  ],
  ...[
    '10.0.0.1',
    '192.168.1.1',
    '100.100.100.200',
    '[fe80::1]',
    '[2001:0:7f00:1::]',
    '224.0.0.1',
    '255.255.255.255',
  ],
];

test('refuses every spelling of an address that is not public, and names no network', async (context) => {
  const lookup = async () => ['127.0.0.1'];
  const rig = await startRig(context, stand, { egressAllow: '', lookup });
  for (const host of inward) {
    const answer = await ask(context, rig, `${host}:443`);
    assert.deepEqual([answer.status, codeOf(answer)], [403, 'tunnel_address_refused'], host);
    assert.equal(
      answer.fields.get('proxy-status'),
      'comity; error=destination_ip_prohibited; details="The host has an address that is not permitted"',
    );
    assert.doesNotMatch(answer.rest, /loopback|private|\d\.\d/);
  }
  const facts = rig.factsOf('tunnel-refused');
  assert.equal(facts.length, inward.length);
  assert.equal(facts[0]?.why, '127.0.0.1: loopback, 127.0.0.0/8');
  assert.equal(rig.proxy.count(), 0);
});

test('refuses its own listener where loopback is let through', async (context) => {
  const rig = await startRig(context, stand);
  const answer = await ask(context, rig, `127.0.0.1:${rig.port}`);
  assert.deepEqual([answer.status, codeOf(answer)], [403, 'tunnel_address_refused']);
  assert.equal((await rig.told('tunnel-refused')).why, '127.0.0.1: a listener of this program');
});

test('goes where the target says, whatever Host says', async (context) => {
  const rig = await startRig(context, stand, { egressAllow: '' });
  assert.equal((await ask(context, rig, '10.0.0.1:443')).status, 403);
  assert.equal((await rig.told('tunnel-refused')).host, '10.0.0.1');
});

test('judges each answer for a name and dials what it judged, when the name changes from public to private', async (context) => {
  const port = await startDestination(context, (socket) => void socket.end());
  const answers = [['127.0.0.1'], ['10.0.0.1'], ['127.0.0.1', '10.0.0.1']];
  const rig = await startRig(context, stand, { lookup: async () => answers.shift() ?? [] });
  const target = `rebinding.example:${port}`;
  assert.equal((await ask(context, rig, target)).status, 200);
  assert.equal((await rig.told('tunnel-opened')).address, '127.0.0.1');
  assert.equal((await ask(context, rig, target)).status, 403);
  assert.equal((await ask(context, rig, target)).status, 403);
  assert.deepEqual(answers, []);
});

const failures: readonly (readonly [what: string, failure: Error, status: number, error: string])[] = [
  ['an unknown name', new DialFailure('dns', 'x', { code: 'ENOTFOUND' }), 502, 'dns_error'],
  ['no connection in time', new DialFailure('timeout', 'x'), 504, 'connection_timeout'],
  [
    'a refused connection',
    new DialFailure('connect', 'x', { code: 'ECONNREFUSED' }),
    502,
    'connection_refused',
  ],
  ['no route', new DialFailure('connect', 'x', { code: 'ENETUNREACH' }), 502, 'destination_ip_unroutable'],
  [
    'a broken connection',
    new DialFailure('connect', 'x', { code: 'ECONNRESET' }),
    502,
    'connection_terminated',
  ],
  ['another failure', new DialFailure('connect', 'x'), 502, 'destination_unavailable'],
  ['a fault of ours', new Error('at 10.0.0.1'), 502, 'proxy_internal_error'],
];

for (const [what, failure, status, error] of failures) {
  test(`answers ${what} with ${status} and ${error}`, async (context) => {
    const rig = await startRig(context, stand, { dial: () => Promise.reject(failure) });
    const answer = await ask(context, rig, 'a.example:443');
    assert.equal(answer.status, status);
    assert.match(answer.fields.get('proxy-status') ?? '', new RegExp(`^comity; error=${error}; `));
    assert.doesNotMatch(answer.rest, /10\.0\.0\.1/);
    assert.equal(rig.facts.length, 1);
    assert.equal(rig.proxy.count(), 0);
  });
}

test('answers a closed port with 502, and a name that does not resolve in time with 504', async (context) => {
  const rig = await startRig(context, stand, {
    settings: { egressDnsMs: 50 },
    lookup: (name) =>
      name === 'gone.example' ? Promise.reject(new Error('none')) : new Promise(() => undefined),
  });
  const refused = await ask(context, rig, '127.0.0.1:9');
  assert.deepEqual([refused.status, codeOf(refused)], [502, 'destination_failed']);
  assert.match(refused.fields.get('proxy-status') ?? '', /error=connection_refused; details="The connection/);
  assert.match(
    (await ask(context, rig, 'gone.example:9')).fields.get('proxy-status') ?? '',
    /error=dns_error/,
  );
  const late = await ask(context, rig, 'slow.example:9');
  assert.deepEqual([late.status, codeOf(late)], [504, 'destination_timeout']);
  assert.match(late.fields.get('proxy-status') ?? '', /error=dns_timeout/);
});

test('answers as application/problem+json where Accept prefers it', async (context) => {
  const rig = await startRig(context, stand);
  const answer = await ask(context, rig, '/x', ['Accept: application/problem+json']);
  assert.equal(answer.fields.get('content-type'), 'application/problem+json');
  assert.match(answer.rest, /"type":"\/docs\/errors#tunnel_target_invalid"/);
});
