import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { addressOf, describe } from '../../../src/store/postgres/connection/address.ts';
import { caFile } from './tls-front.ts';

test('parts of the URL say where and who', () => {
  const address = addressOf('postgres://us%40er:p%3Ass@db.example:6543/sh%20op');
  assert.equal(address.host, 'db.example');
  assert.equal(address.port, 6543);
  assert.equal(address.database, 'sh op');
  assert.equal(address.user, 'us@er');
  assert.equal(address.password, 'p:ss');
  assert.equal(describe(address), 'db.example:6543/sh op');
});

test('what the URL leaves out has the values of libpq', () => {
  const address = addressOf('postgresql:///shop');
  assert.equal(describe(address), 'localhost:5432/shop');
  assert.equal(address.user, undefined);
  assert.equal(address.password, undefined);
  assert.equal(address.tls.mode, 'optional');
  assert.equal(address.channelBinding, 'prefer');
});

test('an IPv6 address stands in brackets in URLs and descriptions alone', () => {
  const address = addressOf('postgres://[::1]:5433/shop');
  assert.equal(address.host, '::1');
  assert.equal(describe(address), '[::1]:5433/shop');
});

test('the folder of a Unix socket is a host without TLS', () => {
  for (const url of ['postgres:///shop?host=/run/postgresql', 'postgres://%2Frun%2Fpostgresql/shop']) {
    const address = addressOf(url);
    assert.equal(describe(address), '/run/postgresql:5432/shop');
    assert.equal(address.tls.mode, 'off');
  }
});

test('parameters name what the parts of the URL may name', () => {
  const address = addressOf('postgres:///x?host=h&port=1&dbname=d&user=u&password=p&options=-c%20a%3Db');
  assert.equal(describe(address), 'h:1/d');
  assert.deepEqual([address.user, address.password, address.options], ['u', 'p', '-c a=b']);
});

test('no print of an address shows the password', () => {
  const address = addressOf('postgres://u:secret-word@h/d');
  for (const print of [
    inspect(address),
    JSON.stringify(address),
    describe(address),
    inspect({ ...address }),
  ]) {
    assert.doesNotMatch(print, /secret-word/);
  }
});

test('sslmode means what it means to libpq', () => {
  const tls = (parameters: string) => addressOf(`postgres://h/d?${parameters}`).tls;
  assert.deepEqual(tls('sslmode=disable'), { mode: 'off' });
  const unverified = { direct: false, options: { rejectUnauthorized: false } };
  assert.deepEqual(tls('sslmode=allow'), { mode: 'optional', ...unverified });
  assert.deepEqual(tls('sslmode=prefer'), { mode: 'optional', ...unverified });
  assert.deepEqual(tls('sslmode=require'), { mode: 'required', ...unverified });
  assert.deepEqual(tls('sslmode=verify-full'), { mode: 'required', direct: false, options: {} });
  assert.deepEqual(tls('sslmode=verify-full&sslrootcert=system'), {
    mode: 'required',
    direct: false,
    options: {},
  });
  const chain = tls(`sslmode=verify-ca&sslrootcert=${caFile}`);
  assert.ok(chain.mode === 'required');
  assert.match(String(chain.options.ca), /BEGIN CERTIFICATE/);
  assert.equal(chain.options.rejectUnauthorized, undefined);
  assert.equal(typeof chain.options.checkServerIdentity, 'function');
  const direct = tls('sslmode=require&sslnegotiation=direct');
  assert.ok(direct.mode === 'required' && direct.direct);
});

const refusals: readonly (readonly [string, RegExp])[] = [
  ['mysql://h/d', /must start with postgres:\/\//],
  ['postgres://h:99999/d', /must have the form/],
  ['postgres://h1:1,h2:2/d', /must have the form/],
  ['postgres://h', /must name a database/],
  ['postgres://h/', /must name a database/],
  ['postgres://h/d?port=0', /port of the database must be/],
  ['postgres://h/d?port=1.5', /port of the database must be/],
  ['postgres://h/d?sslmod=require', /an unknown parameter "sslmod"/],
  [
    'postgres://h/d?sslmode=on',
    /sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full/,
  ],
  ['postgres://h/d?sslmode=verify-ca', /needs sslrootcert/],
  ['postgres://h/d?sslmode=require&sslrootcert=system', /needs sslmode=verify-full/],
  ['postgres://h/d?sslnegotiation=direct', /needs sslmode=require/],
  ['postgres://h/d?sslmode=disable&channel_binding=require', /needs TLS/],
  ['postgres://h/d?channel_binding=maybe', /channel_binding must be one of/],
  ['postgres://h/d?connect_timeout=3', /COMITY_DATABASE_CONNECT_TIMEOUT_MS/],
  ['postgres://u:100%25%zz@h/d', /write it as %25/],
];

for (const [url, message] of refusals) {
  test(`refuses ${url.replace('postgres://', '')} in one sentence`, () => {
    assert.throws(
      () => addressOf(url),
      (error) => {
        assert.ok(error instanceof TypeError, String(error));
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('a refusal never repeats the password', () => {
  for (const url of [
    'postgres://u:secret-word@h:x/d',
    'postgres://u:secret-word@h/',
    'postgres://u:secret-word%@h/d',
  ]) {
    assert.throws(
      () => addressOf(url),
      (error) => error instanceof Error && !error.message.includes('secret-word'),
    );
  }
});

test('a file of certificates that is not there is told by its path', () => {
  assert.throws(
    () => addressOf('postgres://h/d?sslmode=verify-full&sslrootcert=/no/such.pem'),
    /\/no\/such\.pem/,
  );
});
