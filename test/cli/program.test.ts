/** The command line as a whole: help, usage errors, exit codes, and `check`. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { runCommand, spawnCommand } from '../harness/command-line.ts';
import { shopConfig as shop } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const folder = temporaryFolder();

test('prints help that names every subcommand and every exit code', async () => {
  const { code, stdout, stderr } = await runCommand(['--help']);
  assert.deepEqual([code, stderr], [0, '']);
  for (const word of [
    'serve',
    'init',
    'check',
    'backup',
    'restore',
    'migrate',
    'users',
    'keys',
    'endpoints',
    'deliveries',
    'events',
    'listen',
    '  0 ',
    '  1 ',
    '  2 ',
    '  3 ',
    '  130 ',
  ])
    assert.ok(stdout.includes(word));
});

for (const command of ['serve', 'init', 'check', 'backup', 'restore', 'migrate', 'users', 'keys']) {
  test(`prints help for ${command}`, async () => {
    const { code, stdout } = await runCommand([command, '--help']);
    assert.equal(code, 0);
    assert.ok(stdout.startsWith(`Usage: comity ${command}`));
  });
}

test('prints the version of the package', async () => {
  const { code, stdout } = await runCommand(['--version']);
  assert.deepEqual([code, stdout.trim()], [0, JSON.parse(readFileSync('package.json', 'utf8')).version]);
});

for (const args of [[], ['sevre'], ['serve', '--prot', '1'], ['backup'], ['check', 'one', 'too', 'many']]) {
  test(`answers "comity ${args.join(' ')}" with the usage exit code`, async () => {
    const { code, stdout, stderr } = await runCommand(args);
    assert.deepEqual([code, stdout], [2, '']);
    assert.notEqual(stderr, '');
  });
}

test('suggests the subcommand that was meant', async () => {
  assert.match((await runCommand(['sevre'])).stderr, /serve/);
});

test('tells a configuration mistake in one line without a stack, and exits 2', async () => {
  for (const command of ['serve', 'check']) {
    const { code, stdout, stderr } = await runCommand([command], { COMITY_PORT: 'abc', COMITY_CONFIG: shop });
    assert.deepEqual([code, stdout], [2, '']);
    assert.equal(stderr, 'comity: COMITY_PORT must be an integer from 0 to 65535, not "abc"\n');
  }
});

test('shows the stack of an error at log level debug', async () => {
  const environment = { COMITY_LOG_LEVEL: 'debug', COMITY_PORT: 'abc' };
  assert.match((await runCommand(['check'], environment)).stderr, /\n {4}at /);
});

test('says where it looked for the configuration', async () => {
  const { code, stderr } = await spawnCommand(['check'], {}, { cwd: folder }).ended;
  assert.equal(code, 2);
  assert.match(
    stderr,
    /^comity: there is no configuration file at .*comity\.config\.ts; create one with "comity init"/,
  );
});

test('refuses half of a certificate', async () => {
  const { code, stderr } = await runCommand(['serve'], {
    COMITY_TLS_KEY: '/etc/hush.pem',
    COMITY_CONFIG: shop,
  });
  assert.equal(code, 2);
  assert.equal(stderr, 'comity: COMITY_TLS_CERT and COMITY_TLS_KEY must be set together\n');
});

test('prints what a sound configuration would serve', async () => {
  const { code, stdout, stderr } = await runCommand(['check', '--config', shop]);
  assert.deepEqual([code, stderr], [0, '']);
  for (const name of ['categories', 'products', 'articles', 'notes'])
    assert.ok(stdout.includes(`/api/v1/${name}\n`));
  assert.match(stdout, /\n {4}read {5}published is true OR owner is the caller\n/);
});

test('prints the same as one JSON object', async () => {
  const { code, stdout } = await runCommand(['check', '--config', shop, '--json']);
  const report = JSON.parse(stdout);
  assert.deepEqual([code, report.sound, report.title, report.collections.length], [0, true, 'Shop', 4]);
  assert.deepEqual(report.collections[1].required, ['name', 'price', 'categoryId']);
  assert.equal(report.collections[2].rules.read, 'published is true OR owner is the caller');
});

test('prints rules with brackets, those of members and of actions too', async () => {
  const path = join(folder, 'rules.config.mjs');
  writeFileSync(
    path,
    `const own = { allOf: [{ where: { status: 'open' } }, 'owner'] };
     const properties = { status: { type: 'string' }, note: { type: 'string' } };
     const handler = () => undefined;
     export default {
       collections: {
         orders: {
           schema: { type: 'object', properties },
           access: { update: { anyOf: [own, { role: 'admin' }] }, delete: { allOf: [{ anyOf: ['owner', { role: 'admin' }] }, { where: { status: 'open', note: null } }] } },
           hidden: { note: { anyOf: [{ role: 'agent' }, own] } },
           actions: { close: { on: 'member', method: 'POST', access: { anyOf: ['owner', own] }, handler } },
         },
       },
     };`,
  );
  const { stdout, stderr } = await runCommand(['check', '--config', path]);
  assert.match(
    stdout,
    /\n {4}update {3}\(status is open AND owner is the caller\) OR role is admin\n/,
    stderr,
  );
  assert.match(
    stdout,
    /\n {4}delete {3}\(owner is the caller OR role is admin\) AND \(status is open AND note is absent\)\n/,
  );
  assert.match(stdout, /\n {4}see note role is agent OR \(status is open AND owner is the caller\)\n/);
  assert.match(
    stdout,
    /orders\/\{id\}\/close, owner is the caller OR \(status is open AND owner is the caller\)\n/,
  );
});

test('lists what runs besides the collections, with the next times of jobs', async () => {
  const path = join(folder, 'functions.mjs');
  mkdirSync(join(folder, 'mails'));
  writeFileSync(join(folder, 'mails/hi.txt'), 'Subject: Hi\n\nHi.\n');
  writeFileSync(
    path,
    `const handler = () => undefined;
     export default {
       collections: {},
       actions: { ping: { method: 'GET', path: '/ping', access: { role: 'agent' }, handler } },
       eventTypes: { 'comments.created': {}, 'tickets.merged': {} },
       subscribers: { reopen: { events: ['comments.created', 'tickets.*'], orderBy: () => 1, handler } },
       jobs: {
         close: { cron: '0 3 * * *', timeZone: 'Europe/Berlin', run: handler },
         poll: { every: '15m', run: handler },
       },
       senders: { billing: { preset: 'timestamped', handler } },
       mail: { templates: './mails' },
     };`,
  );
  const environment = { COMITY_CONFIG: path, COMITY_SMTP_URL: 'smtp://robot:secret@mail.example:2525' };
  const { stdout, stderr } = await runCommand(['check'], environment);
  assert.match(stdout, /\n {2}actions\n {4}GET \/api\/v1\/ping, role is agent\n/, stderr);
  assert.match(stdout, /\n {2}subscribers\n {4}reopen, of comments\.created, tickets\.\*, in order\n/);
  assert.match(
    stdout,
    /\n {4}close, 0 3 \* \* \* \(Europe\/Berlin\), next \d{4}-\d\d-\d\dT0[12]:00:00\.000Z\n/,
  );
  assert.match(stdout, /\n {4}poll, every 900 s, next \S+Z\n/);
  assert.match(
    stdout,
    /POST \/api\/v1\/webhooks\/billing, timestamped, handler, secret BILLING_WEBHOOK_SECRET \(not set/,
  );
  assert.match(stdout, /\n {2}mail templates\n {4}hi, sent by mail\.example:2525\n$/);
  const report = JSON.parse((await runCommand(['check', '--json'], environment)).stdout);
  assert.deepEqual(report.subscribers, [
    { name: 'reopen', events: ['comments.created', 'tickets.*'], isOrdered: true },
  ]);
  assert.deepEqual([report.jobs[1].everyMs, report.jobs[1].nextTimes.length], [900_000, 3]);
  assert.doesNotMatch(JSON.stringify(report), /secret@/);
});

test('reports the settings that a configuration lacks, all at once, as the start does', async () => {
  const path = join(folder, 'needs.mjs');
  writeFileSync(
    path,
    `export default {
       collections: {},
       issuers: [{ issuer: 'https://shop.example', audience: 'shop', algorithms: ['RS256'] }],
       accounts: { passwordless: { link: true } },
     };`,
  );
  const environment = {
    ...{ COMITY_CONFIG: path, COMITY_DATA: folder, COMITY_PUBLIC_URL: 'https://shop.example' },
    ...{
      COMITY_MAIL_RETENTION_SECONDS: '86400',
      COMITY_MAIL_ATTEMPTS_MAX: '30',
      COMITY_PASSKEY_ORIGINS: 'https://a.example,https://b.example',
    },
  };
  const mistakes = [
    /issuers names COMITY_PUBLIC_URL/,
    /accounts\.passwordless\.link needs the page .* COMITY_MAIL_LOGIN_URL/,
    /COMITY_PASSKEY_ORIGINS has https:\/\/b\.example/,
    /attempts to send a mail \(COMITY_MAIL_ATTEMPTS_MAX\)/,
  ];
  const checked = await runCommand(['check'], environment);
  const started = await runCommand(['serve'], environment);
  for (const { code, stderr } of [checked, started]) {
    assert.equal(code, 2, stderr);
    for (const mistake of mistakes) assert.match(stderr, mistake);
  }
  const report = JSON.parse((await runCommand(['check', '--json'], environment)).stdout);
  assert.deepEqual([report.sound, report.mistakes.length], [false, 4]);
});

test('prints mistakes as JSON too, and exits 2', async () => {
  const { code, stdout, stderr } = await runCommand(['check', '--json'], {
    COMITY_CONFIG: shop,
    COMITY_PORT: '-1',
    COMITY_HOST: '0.0.0.0',
  });
  assert.deepEqual([code, stderr], [2, '']);
  assert.deepEqual(JSON.parse(stdout), {
    sound: false,
    mistakes: ['COMITY_PORT must be an integer from 0 to 65535, not "-1"'],
  });
});

test('warns on stderr about a variable that it does not know', async () => {
  const { code, stderr } = await runCommand(['check'], { COMITY_CONFIG: shop, COMITY_PROT: '1' });
  assert.equal(code, 0);
  assert.equal(
    stderr,
    'comity: warning: COMITY_PROT is not a setting and was ignored; did you mean COMITY_PORT?\n',
  );
});

test('takes settings from the configuration, below the environment', async () => {
  const path = join(folder, 'settings.mjs');
  writeFileSync(path, 'export default { collections: {}, settings: { port: -5 } };\n');
  const { code, stderr } = await runCommand(['check', '--config', path]);
  assert.deepEqual(
    [code, stderr],
    [2, `comity: ${path}:1: settings.port must be an integer from 0 to 65535, not -5\n`],
  );
  assert.equal((await runCommand(['check', '--config', path], { COMITY_PORT: '5' })).code, 0);
});
