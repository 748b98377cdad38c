/** The settings table (§8) and its loader: what is taken from where, and every sentence that refuses a value. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Environment, loadSettings, type WrittenSettings } from '../../src/config/load-settings.ts';
import type { FixedBound, Setting } from '../../src/config/setting.ts';
import { fixedBounds, type SettingOverrides, settings, variableOf } from '../../src/config/settings.ts';
import { mistakesFrom } from '../harness/mistakes.ts';

const rows = Object.entries<Setting>(settings);
const bounds = Object.entries<FixedBound>(fixedBounds);

function mistakesOf(
  environment: Environment,
  configured: SettingOverrides = {},
  commandLine: WrittenSettings = {},
): readonly string[] {
  return mistakesFrom(() => loadSettings(environment, configured, commandLine));
}

test('gives every setting its default when nothing is set', () => {
  const { settings: loaded, warnings } = loadSettings({});
  for (const [name, row] of rows) assert.equal(loaded[name as keyof typeof loaded], row.default, name);
  assert.deepEqual(warnings, []);
});

test('has the defaults that the surface names', () => {
  const { settings: loaded } = loadSettings({});
  assert.equal(loaded.host, '127.0.0.1');
  assert.equal(loaded.port, 4000);
  assert.equal(loaded.data, './data');
  assert.equal(loaded.adminKey, undefined);
  assert.equal(loaded.traceMethod, false);
  assert.equal(loaded.corsOrigins, '');
  assert.equal(loaded.listLimitDefault, 20);
  assert.equal(loaded.listLimitMax, 1000);
  assert.equal(loaded.bodyBytesMax, 1_048_576);
  assert.equal(loaded.targetBytesMax, 8000);
  assert.equal(loaded.idempotencySeconds, 86_400);
});

test('has no setting and no fixed bound that nothing reads', () => {
  const files = globSync('src/**/*.ts').filter((path) => !path.includes('config/settings'));
  const words = new Set(files.flatMap((path) => readFileSync(path, 'utf8').match(/\w+/g) ?? []));
  const unread = [...rows, ...bounds].map(([name]) => name).filter((name) => !words.has(name));
  assert.deepEqual(unread, []);
});

test('refuses a fixed bound as a variable and in the configuration, and tells its value', () => {
  const { settings: loaded } = loadSettings({});
  for (const [name, { value, unit, meaning }] of bounds) {
    assert.equal(loaded[name as keyof typeof loaded], value);
    assert.match(meaning, /^[A-Z`*].*\.$/, name);
    const sentence = `is not a setting: the bound is always ${value} ${unit}; remove it`;
    assert.deepEqual(mistakesOf({ [variableOf(name)]: '1' }), [`${variableOf(name)} ${sentence}`]);
    assert.deepEqual(mistakesOf({}, { [name]: 1 } as never), [`settings.${name} ${sentence}`]);
  }
});

test('names the variable of each setting by rule', () => {
  assert.equal(variableOf('port'), 'COMITY_PORT');
  assert.equal(variableOf('bodyBytesMax'), 'COMITY_BODY_BYTES_MAX');
  assert.equal(new Set(rows.map(([name]) => variableOf(name))).size, rows.length);
});

test('describes every setting in a sentence and keeps every default within its bounds', () => {
  for (const [name, row] of rows) {
    assert.match(row.meaning, /^[A-Z`*].*\.$/, name);
    if (row.kind === 'integer') assert.ok(row.least <= row.default && row.default <= row.most, name);
  }
});

test('ends the name of every limit with its unit or with what it counts', () => {
  const units =
    /(?:Max|Min|Default|Ms|Seconds|Kibibytes|Mebibytes|Passes|Attempts|Threads|Processes|Reads|Writes|Connections|^port|^proxiesTrusted)$/;
  for (const [name, row] of rows) if (row.kind === 'integer') assert.match(name, units);
});

for (const [name, row] of rows) {
  if (row.kind !== 'integer') continue;
  test(`takes ${name} at both of its bounds and refuses the next value beyond each`, () => {
    const variable = variableOf(name);
    const sentence = (value: number) =>
      `${variable} must be an integer from ${row.least} to ${row.most}, not "${value}"`;
    for (const value of [row.least, row.most]) {
      const refused = mistakesOf({ [variable]: String(value) }).filter((mistake) =>
        mistake.startsWith(variable),
      );
      assert.deepEqual(refused, []);
    }
    for (const value of [row.least - 1, row.most + 1]) {
      assert.deepEqual(mistakesOf({ [variable]: String(value) }), [sentence(value)]);
    }
  });
}

test('refuses a port that is not a number, and says so exactly', () => {
  assert.deepEqual(mistakesOf({ COMITY_PORT: 'abc' }), [
    'COMITY_PORT must be an integer from 0 to 65535, not "abc"',
  ]);
});

test('guesses at no number that is not plain decimal', () => {
  for (const value of ['0x10', '1e3', ' 80', '80 ', '8_0', '80.0', '+80', '-', '٣', '9'.repeat(400)]) {
    assert.equal(mistakesOf({ COMITY_PORT: value }).length, 1, value);
  }
});

test('cuts a long value short in the sentence that refuses it', () => {
  const [mistake = ''] = mistakesOf({ COMITY_PORT: 'x'.repeat(10_000) });
  assert.ok(mistake.length < 150);
});

test('takes on and off for a switch and nothing else', () => {
  assert.equal(loadSettings({ COMITY_TRACE_METHOD: 'on' }).settings.traceMethod, true);
  assert.equal(loadSettings({ COMITY_TRACE_METHOD: 'off' }).settings.traceMethod, false);
  assert.deepEqual(mistakesOf({ COMITY_TRACE_METHOD: 'true' }), [
    'COMITY_TRACE_METHOD must be on or off, not "true"',
  ]);
});

test('lists the choices when a choice is none of them', () => {
  assert.deepEqual(mistakesOf({ COMITY_LOG_LEVEL: 'loud' }), [
    'COMITY_LOG_LEVEL must be one of fatal, error, warn, info, debug, silent, not "loud"',
  ]);
});

test('counts an empty variable as unset', () => {
  assert.equal(loadSettings({ COMITY_PORT: '', COMITY_ADMIN_KEY: '' }).settings.port, 4000);
});

test('puts the command line before the environment before the configuration', () => {
  const configured = { port: 1, host: 'localhost', data: './configured' };
  const loaded = loadSettings({ COMITY_PORT: '2', COMITY_HOST: '127.0.0.2' }, configured, {
    port: '3',
  }).settings;
  assert.deepEqual([loaded.port, loaded.host, loaded.data], [3, '127.0.0.2', './configured']);
});

test('checks values of the configuration by their own type and names where they stand', () => {
  assert.deepEqual(mistakesOf({}, { port: '80' as never }), [
    'settings.port must be an integer from 0 to 65535, not "80"',
  ]);
  assert.deepEqual(mistakesOf({}, { traceMethod: 'on' as never }), [
    'settings.traceMethod must be true or false, not "on"',
  ]);
  assert.deepEqual(mistakesOf({}, {}, { port: 'x' }), ['--port must be an integer from 0 to 65535, not "x"']);
});

test('refuses a setting of the configuration that does not exist and suggests the nearest', () => {
  assert.deepEqual(mistakesOf({}, { bodyByteMax: 1 } as never), [
    'settings.bodyByteMax is not a setting; did you mean bodyBytesMax?',
  ]);
});

test('warns about an unknown variable with the nearest known name', () => {
  const { warnings } = loadSettings({ COMITY_PROT: '80', COMITY_WHATEVER_ELSE: '1', HOME: '/root' });
  assert.deepEqual(warnings, [
    'COMITY_PROT is not a setting and was ignored; did you mean COMITY_PORT?',
    'COMITY_WHATEVER_ELSE is not a setting and was ignored',
  ]);
});

for (const variable of ['COMITY_TLS_CERT', 'COMITY_TLS_KEY']) {
  test(`refuses ${variable} without the other`, () => {
    assert.deepEqual(mistakesOf({ [variable]: '/etc/hush.pem' }), [
      'COMITY_TLS_CERT and COMITY_TLS_KEY must be set together',
    ]);
  });
}

const tls = { COMITY_TLS_CERT: 'cert.pem', COMITY_TLS_KEY: 'key.pem' };

test('listens on other than loopback addresses where no credential crosses the network in the clear', () => {
  const open = { COMITY_HOST: '0.0.0.0' };
  assert.equal(mistakesOf(open).length, 1);
  loadSettings({ ...open, ...tls });
  loadSettings({ ...open, COMITY_BEHIND_PROXY: 'on' });
  // Beside a port of TLS the other one is cleartext.
  assert.match(mistakesOf({ ...open, ...tls, COMITY_TLS_PORT: '8443' })[0] ?? '', /remove COMITY_TLS_PORT/);
  loadSettings({ ...open, ...tls, COMITY_TLS_PORT: '8443', COMITY_BEHIND_PROXY: 'on' });
});

for (const port of ['-1', '65536', '8443x', '1e3']) {
  test(`refuses COMITY_TLS_PORT ${port}`, () => {
    assert.deepEqual(mistakesOf({ ...tls, COMITY_TLS_PORT: port }), [
      'COMITY_TLS_PORT must be a port from 0 to 65535',
    ]);
  });
}

test('refuses a port for TLS without a certificate', () => {
  assert.deepEqual(mistakesOf({ COMITY_TLS_PORT: '8443' }), [
    'COMITY_TLS_PORT needs COMITY_TLS_CERT and COMITY_TLS_KEY',
  ]);
});

test('reports every mistake at once', () => {
  const environment = { COMITY_PORT: 'abc', COMITY_TRACE_METHOD: 'yes', COMITY_TLS_PORT: 'k' };
  assert.equal(mistakesOf(environment, { nothing: 1 } as never).length, 4);
});

test('never repeats an administrator key, not even the one it refuses', () => {
  const refused = mistakesOf({ COMITY_ADMIN_KEY: 'pk_hush_hush' });
  assert.deepEqual(refused, ['COMITY_ADMIN_KEY must start with "sk_" and have at least one more character']);
  const [odd = ''] = mistakesOf({ COMITY_ADMIN_KEY: 'sk_hush hush' });
  assert.equal(odd, 'COMITY_ADMIN_KEY may hold only letters, digits and the characters - . _ ~ + / =');
  assert.deepEqual(mistakesOf({}, { adminKey: 12 as never }), ['settings.adminKey must be a string']);
  const { warnings } = loadSettings({ COMITY_ADMIN_KEY: 'sk_hush' });
  assert.deepEqual(warnings, ['the administrator key has fewer than 24 characters and could be guessed']);
});

test('warns of payloads and deliveries that are gone before they could be sent again', () => {
  const { warnings } = loadSettings({ COMITY_EVENT_RETENTION_SECONDS: '86400' });
  assert.deepEqual(warnings, [
    'COMITY_EVENT_RETENTION_SECONDS is 86400, shorter than the 2592000 seconds in which a delivery may be sent again: deleted events and deliveries cannot be',
  ]);
});

test('refuses a lease that an attempt could outlast', () => {
  assert.deepEqual(mistakesOf({ COMITY_WEBHOOK_LEASE_MS: '22499', COMITY_WEBHOOK_TIMEOUT_MS: '15000' }), [
    'webhookLeaseMs (22499) must be at least one and a half times webhookTimeoutMs (15000), so that an attempt ends within its lease',
  ]);
  assert.deepEqual(mistakesOf({ COMITY_WEBHOOK_LEASE_MS: '22500' }), []);
});

test('takes origins, the star, or nothing for CORS, and refuses what no browser would send', () => {
  for (const value of ['*', 'https://a.example', 'https://a.example, http://localhost:5173']) {
    assert.equal(loadSettings({ COMITY_CORS_ORIGINS: value }).settings.corsOrigins, value);
  }
  for (const value of [
    'https://a.example/',
    'a.example',
    '*,https://a.example',
    'null',
    'https://a.example,,',
  ]) {
    assert.equal(mistakesOf({ COMITY_CORS_ORIGINS: value }).length, 1, value);
  }
});

test('takes names of fields for CORS, and * only where pages send no credentials', () => {
  const origins = { COMITY_CORS_ORIGINS: 'https://a.example' };
  for (const name of ['COMITY_CORS_HEADERS', 'COMITY_CORS_EXPOSE']) {
    for (const value of ['X-Trace', 'X-Trace, x-b3'])
      assert.deepEqual(mistakesOf({ ...origins, [name]: value }), []);
    for (const value of ['X Trace', 'X-Trace,,X', 'X:'])
      assert.equal(mistakesOf({ [name]: value }).length, 1, value);
    assert.equal(mistakesOf({ ...origins, [name]: 'X-Trace, *' }).length, 1);
    for (const further of [{ COMITY_CORS_ORIGINS: '*' }, { ...origins, COMITY_CORS_CREDENTIALS: 'off' }])
      assert.deepEqual(mistakesOf({ ...further, [name]: '*' }), []);
  }
});

test('listens on loopback addresses as they are', () => {
  for (const host of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', 'localhost', 'LOCALHOST']) {
    assert.deepEqual(mistakesOf({ COMITY_HOST: host }), [], host);
  }
});

test('refuses any other address unless a proxy in front is declared', () => {
  for (const host of [
    '0.0.0.0',
    '::',
    '192.168.1.5',
    '::ffff:10.0.0.1',
    'example.com',
    '127.0.0.1.example.com',
  ]) {
    const [mistake = ''] = mistakesOf({ COMITY_HOST: host });
    assert.match(mistake, /is not a loopback address.*COMITY_BEHIND_PROXY=on/, host);
    assert.deepEqual(mistakesOf({ COMITY_HOST: host, COMITY_BEHIND_PROXY: 'on' }), []);
  }
});

test('refuses settings that contradict each other', () => {
  assert.deepEqual(mistakesOf({ COMITY_LIST_LIMIT_DEFAULT: '50', COMITY_LIST_LIMIT_MAX: '10' }), [
    'listLimitDefault (50) must not be over listLimitMax (10)',
  ]);
  assert.deepEqual(mistakesOf({ COMITY_HEADERS_TIMEOUT_MS: '2000', COMITY_REQUEST_TIMEOUT_MS: '1000' }), [
    'headersTimeoutMs (2000) must not be over requestTimeoutMs (1000)',
  ]);
  assert.equal(mistakesOf({ COMITY_FIELDS_BYTES_MAX: '8000' }).length, 1);
  assert.deepEqual(mistakesOf({ COMITY_MEMORY_BYTES_MAX: '16777215' }), [
    'memoryBytesMax (16777215) must be 0 or at least 16777216: with less, Comity could not answer every request that its other limits allow',
  ]);
  for (const bytes of ['0', '16777216']) assert.deepEqual(mistakesOf({ COMITY_MEMORY_BYTES_MAX: bytes }), []);
});

for (const [written, loaded] of [
  ['https://api.example', 'https://api.example'],
  ['https://api.example/', 'https://api.example'],
  ['http://127.0.0.1:4000/backend', 'http://127.0.0.1:4000/backend'],
  ['https://example.com/a/b-c_d.e~f/', 'https://example.com/a/b-c_d.e~f'],
  [`https://example.com/${'a'.repeat(199)}`, `https://example.com/${'a'.repeat(199)}`],
] as const) {
  test(`takes ${written.slice(0, 50)} as the public URL`, () => {
    assert.equal(loadSettings({ COMITY_PUBLIC_URL: written }).settings.publicUrl, loaded);
    assert.equal(loadSettings({}, { publicUrl: written }).settings.publicUrl, loaded);
  });
}

const likeUrl = 'must be a URL such as https://api.example or https://example.com/backend';
const likePath = 'may have only letters, digits and - . _ ~ between the slashes of its path';
for (const [written, mistake] of [
  ['example.com/backend', likeUrl],
  ['/backend', likeUrl],
  ['ftp://example.com', likeUrl],
  ['https://', likeUrl],
  ['https://example.com:/backend', likeUrl],
  ['https://ada:secret@example.com/backend', 'must not contain a user name or a password'],
  ['https://example.com/backend?a=1', 'must not have a query or a fragment'],
  ['https://example.com#top', 'must not have a query or a fragment'],
  ['https://example.com/a/../b', 'must not have . or .. as a segment of its path'],
  ['https://example.com/.', 'must not have . or .. as a segment of its path'],
  ['https://example.com/a//b', likePath],
  ['https://example.com//', likePath],
  ['https://example.com/a%2Fb', likePath],
  ['https://example.com/a b', likePath],
  [`https://example.com/${'a'.repeat(200)}`, 'must have a path of at most 200 characters'],
] as const) {
  test(`refuses ${written.slice(0, 50)} as the public URL`, () => {
    assert.deepEqual(mistakesOf({ COMITY_PUBLIC_URL: written }), [`COMITY_PUBLIC_URL ${mistake}`]);
  });
}
