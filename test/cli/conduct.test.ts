/** `comity conduct`: its reports, its exit codes and its mistakes, against a server that breaks one clause. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { cleanToken, createCleanServer } from '../conduct-suite/clean-server.ts';
import { runCommand } from '../harness/command-line.ts';
import { type Ending, listen } from '../harness/listening.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const header = `Authorization: Bearer ${cleanToken}`;

/** The clean server, and a file that describes it. */
async function target(context: Ending, members: Record<string, unknown> = {}) {
  const { url } = await listen(createCleanServer(), context);
  const file = join(temporaryFolder(), 'target.json');
  writeFileSync(
    file,
    JSON.stringify({
      collection: '/notes',
      sample: { title: 'a {random}' },
      change: { title: 'b' },
      ...members,
    }),
  );
  return { url, file };
}

describe('comity conduct', () => {
  it('prints a scorecard and exits 0 where no clause fails', async (context) => {
    const { url, file } = await target(context);
    const args = ['conduct', url, '--target', file, '--header', header, '--only', 'conditions,patch'];
    const { code, stdout, stderr } = await runCommand(args);
    assert.equal(stderr, '');
    assert.equal(code, 0);
    assert.match(stdout, /^Conduct of http:\/\/127\.0\.0\.1:\d+\/notes$/m);
    assert.match(stdout, /^conditions +\d+ +- +- +-$/m);
    assert.match(stdout, /^No clause fails: \d+ of \d+ hold, 0 warnings, 0 not applicable\.$/m);
  });

  it('reports a finding with its evidence as JSON, JUnit and a page, without the credentials', async (context) => {
    // A destination without a port is refused, so that no tunnel opens.
    const { url, file } = await target(context, { tunnel: { destination: 'no port here' } });
    const folder = temporaryFolder();
    const [junit, html] = [join(folder, 'report.xml'), join(folder, 'report.html')];
    const args = [
      'conduct',
      url,
      '--target',
      file,
      '--header',
      header,
      '--only',
      'tunnel-opens,head-content',
    ];
    const { code, stdout } = await runCommand([...args, '--json', '--junit', junit, '--html', html]);
    const report = JSON.parse(stdout);
    assert.deepEqual(report.summary, { holds: 1, fails: 1, warning: 0, 'not-applicable': 0 });
    assert.equal(code, 1);
    const [, failed] = report.clauses;
    assert.deepEqual(Object.keys(failed).slice(0, 7), [
      ...['id', 'title', 'group', 'section', 'verdict', 'why', 'exchange'],
    ]);
    assert.match(failed.exchange.request, /^CONNECT no port here HTTP\/1\.1\n/);
    assert.match(report.clauses[0].exchange.request, /^Authorization: \*\*\*$/m);
    for (const text of [stdout, readFileSync(junit, 'utf8'), readFileSync(html, 'utf8')])
      assert.ok(!text.includes(cleanToken), 'a report has the credentials');
    assert.match(readFileSync(junit, 'utf8'), /<testsuite name="tunnel" tests="1" failures="1" skipped="0">/);
    assert.match(readFileSync(html, 'utf8'), /<details class="fails" id="clause-tunnel-opens" open>/);
  });

  it('exits 1 where a clause fails', async (context) => {
    // A destination without a port is refused, so that no tunnel opens.
    const { url, file } = await target(context, { tunnel: { destination: 'no port here' } });
    const { code, stdout } = await runCommand([
      ...['conduct', url, '--target', file, '--header', header, '--only', 'tunnel-opens'],
    ]);
    assert.equal(code, 1);
    assert.match(stdout, /^1 of 1 clauses fail/m);
    assert.match(stdout, /^ {2}tunnel-opens \(RFC 9110 §9\.3\.6\)$/m);
    assert.match(stdout, /^ {6}> CONNECT no port here HTTP\/1\.1$/m);
  });

  it('lists and explains clauses without a server', async () => {
    const listed = await runCommand(['conduct', '--list']);
    assert.equal(listed.code, 0);
    for (const id of ['lost-update', 'receiver-stale', 'sender-gone'])
      assert.ok(listed.stdout.includes(` ${id} `), id);
    const explained = await runCommand(['conduct', '--explain', 'lost-update']);
    assert.equal(explained.code, 0);
    assert.match(explained.stdout, /RFC 9110 §13\.1\.1/);
    assert.match(explained.stdout, /Writes {4}yes/);
  });

  it('judges a receiver of webhooks', async (context) => {
    const { url } = await target(context);
    const args = ['conduct', '--receiver', `${url}/notes`, '--scheme', 'github', '--secret', 'x'];
    const { code, stdout } = await runCommand([...args, '--only', 'receiver-valid,receiver-unsigned']);
    assert.equal(code, 1);
    assert.match(stdout, /receiver-valid/);
  });

  it('writes nothing to another machine without being asked to', async () => {
    // A name that no machine has: the question is asked before a connection is made.
    const { code, stderr } = await runCommand([
      ...['conduct', '--receiver', 'http://conduct.invalid/hooks', '--scheme', 'plain', '--secret', 'x'],
    ]);
    assert.equal(code, 2);
    assert.match(stderr, /give --yes/);
  });

  const mistakes: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['no URL', [], /give the URL of an API/],
    ['no http URL', ['ftp://localhost'], /ftp:\/\/localhost is not an http or https URL/],
    ['nothing that listens', ['http://127.0.0.1:9'], /no connection to 127\.0\.0\.1:9/],
    [
      'an unknown clause',
      ['http://127.0.0.1:9', '--only', 'nothing'],
      /no clause and no group is named nothing/,
    ],
    ['an unknown clause to explain', ['--explain', 'nothing'], /no clause is named nothing/],
    [
      'a header without a colon',
      ['http://127.0.0.1:9', '--header', 'X'],
      /--header takes "Name: value", not "X"/,
    ],
    [
      'a file that is missing',
      ['http://127.0.0.1:9', '--target', '/none.json'],
      /\/none\.json cannot be read/,
    ],
    [
      'a receiver without a scheme',
      ['--receiver', 'http://127.0.0.1:9'],
      /--receiver needs --scheme and --secret/,
    ],
    [
      'an unknown scheme',
      ['--receiver', 'http://127.0.0.1:9', '--scheme', 'x', '--secret', 'y'],
      /--scheme is one of standard, svix/,
    ],
    [
      'two subjects',
      ['http://127.0.0.1:9', '--sender'],
      /give the URL of an API, --receiver URL, or --sender/,
    ],
  ];
  for (const [title, args, message] of mistakes) {
    it(`exits 2 and says so: ${title}`, async () => {
      const { code, stderr } = await runCommand(['conduct', ...args]);
      assert.equal(code, 2);
      assert.match(stderr, message);
    });
  }

  it('names a mistake in the file of the target', async (context) => {
    const { url, file } = await target(context, { smaple: {} });
    const { code, stderr } = await runCommand(['conduct', url, '--target', file]);
    assert.equal(code, 2);
    assert.match(stderr, /smaple is unknown; known are collection, sample, change, headers/);
  });
});
