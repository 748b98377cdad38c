/** Secrets that are kept in files: NAME_FILE in place of NAME. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withKeys } from '../../src/cli/server-client.ts';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { type Environment, loadSettings } from '../../src/config/load-settings.ts';
import { readSenderSecrets } from '../../src/config/sender-secrets.ts';
import { mistakesFrom } from '../harness/mistakes.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const folder = temporaryFolder();

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const key = 'sk_0123456789abcdef01234567';

function mistakesOf(environment: Environment): readonly string[] {
  return mistakesFrom(() => loadSettings(environment));
}

test('every setting that is a secret takes a file, without one line break at its end', () => {
  const { settings } = loadSettings({
    COMITY_ADMIN_KEY_FILE: file('admin', `${key}\n`),
    COMITY_SECRET_KEY_FILE: file('key', `${'ab'.repeat(32)}\r\n`),
    COMITY_SECRET_KEY_PREVIOUS_FILE: file('previous', 'cd'.repeat(32)),
    COMITY_DATABASE_URL_FILE: file('url', 'postgres://a:b@db.example/shop'),
    COMITY_SMTP_URL_FILE: file('smtp', 'smtps://user:pass@mail.example:465\n'),
  });
  const { adminKey, secretKey, secretKeyPrevious, databaseUrl, smtpUrl } = settings;
  assert.deepEqual(
    [adminKey, secretKey, secretKeyPrevious, databaseUrl, smtpUrl],
    [
      ...[key, 'ab'.repeat(32), 'cd'.repeat(32)],
      ...['postgres://a:b@db.example/shop', 'smtps://user:pass@mail.example:465'],
    ],
  );
});

test('the key takes the key file of the program, with the keys that a rotation has left in use', () => {
  const keys = ['a', 'b', 'c'].map((letter) => Buffer.alloc(32, letter).toString('base64'));
  const own = (...lines: readonly string[]) => file('secret.key', `# A comment.\n${lines.join('\n')}\n`);
  const of = (environment: Environment) => {
    const { secretKey, secretKeyPrevious } = loadSettings(environment).settings;
    return [secretKey, secretKeyPrevious];
  };
  const [one = '', two = '', three = ''] = keys;
  assert.deepEqual(of({ COMITY_SECRET_KEY_FILE: own(one) }), [one, undefined]);
  assert.deepEqual(of({ COMITY_SECRET_KEY_FILE: own(one, two) }), [one, two]);
  const both = { COMITY_SECRET_KEY_FILE: own(one, two), COMITY_SECRET_KEY_PREVIOUS: three };
  assert.deepEqual(of(both), [one, `${two},${three}`]);
  assert.deepEqual(of({ COMITY_SECRET_KEY: one, COMITY_SECRET_KEY_PREVIOUS_FILE: own(two, three) }), [
    one,
    `${two},${three}`,
  ]);
  assert.match(mistakesOf({ COMITY_SECRET_KEY_FILE: own('no key') }).join(), /^COMITY_SECRET_KEY must be 32/);
});

test('secrets of providers, of senders and of commands take a file too', () => {
  const path = file('client', 'the-secret\n');
  const { providers } = loadSettings({
    COMITY_OAUTH_GOOGLE_CLIENT_ID: 'id',
    COMITY_OAUTH_GOOGLE_CLIENT_SECRET_FILE: path,
  });
  assert.equal(providers.get('google')?.clientSecret, 'the-secret');
  const { senders } = resolveConfiguration({ collections: {}, senders: { billing: { preset: 'stripe' } } });
  const billing = file('billing', 'whsec_0123456789abcdef0123456789abcdef\n');
  const secrets = readSenderSecrets({ BILLING_WEBHOOK_SECRET_FILE: billing }, senders);
  assert.deepEqual(secrets.get('BILLING_WEBHOOK_SECRET'), ['whsec_0123456789abcdef0123456789abcdef']);
  assert.equal(withKeys({ COMITY_KEY_FILE: path }).COMITY_KEY, 'the-secret');
});

test('a value and a file together, and a file that cannot be taken, are refused without its content', () => {
  const path = file('both', `${key}\n`);
  const long = file('long', 's'.repeat(70_000));
  const cases: readonly (readonly [Environment, RegExp])[] = [
    [
      { COMITY_ADMIN_KEY: key, COMITY_ADMIN_KEY_FILE: path },
      /^COMITY_ADMIN_KEY and COMITY_ADMIN_KEY_FILE are both set/,
    ],
    [
      { COMITY_ADMIN_KEY_FILE: join(folder, 'none') },
      /^COMITY_ADMIN_KEY_FILE names .*cannot be read: ENOENT/,
    ],
    [{ COMITY_ADMIN_KEY_FILE: folder }, /is a folder$/],
    [{ COMITY_ADMIN_KEY_FILE: file('empty', '\n') }, /is empty$/],
    [{ COMITY_ADMIN_KEY_FILE: long }, /is longer than 65536 bytes$/],
    [{ COMITY_ADMIN_KEY_FILE: file('two', `${key}\n\n`) }, /^COMITY_ADMIN_KEY may hold only/],
    [{ COMITY_SECRET_KEY_FILE: file('short', 'abcd') }, /^COMITY_SECRET_KEY must be 32 random octets/],
    [{ COMITY_SECRET_KEY_PREVIOUS: 'ab'.repeat(32) }, /is set without COMITY_SECRET_KEY/],
  ];
  for (const [environment, expected] of cases) {
    const mistakes = mistakesOf(environment);
    assert.equal(mistakes.length, 1, JSON.stringify(mistakes));
    assert.match(String(mistakes[0]), expected);
    assert.ok(!String(mistakes[0]).includes(key));
  }
});

test('a file is no way to give a setting that is no secret', () => {
  const { warnings } = loadSettings({ COMITY_PORT_FILE: file('port', '8080') });
  assert.match(warnings.join(), /COMITY_PORT_FILE is not a setting/);
});
