/** curl, nghttp and Python, as people have them, against the program on both ports (§4.10, §4.13). What is not installed is skipped, and says so. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { findCommand, type Ran, runCommand } from './command.ts';
import { type Served, serveClients } from './served.ts';

const curlPath = findCommand('curl');
const nghttpPath = findCommand('nghttp');
const pythonPath = findCommand('python3');
let served: Served;

before(async () => {
  served = await serveClients();
});

after(() => served?.end());

async function curl(...args: readonly string[]): Promise<Ran> {
  return runCommand(curlPath ?? '', ['-sS', '--max-time', '10', '--noproxy', '', ...args]);
}

/** What curl prints at its end. */
const version = ['-o', '/dev/null', '-w', '%{http_version} %{response_code} %{num_connects}\\n'];
const ready = () => `${served.program.url}/health/ready`;

describe('curl', { skip: curlPath === undefined ? 'curl is not installed' : false }, () => {
  test('speaks HTTP/2 with prior knowledge', async () => {
    assert.equal((await curl(...version, '--http2-prior-knowledge', ready())).stdout, '2 200 1\n');
  });

  test('upgrades to h2c, and its second request is on the same connection', async () => {
    const { stdout } = await curl(...version, '--http2', ready(), '-o', '/dev/null', ready());
    assert.equal(stdout, '2 200 1\n2 200 0\n');
  });

  test('posts with an upgrade to h2c', async () => {
    const { stdout } = await curl(
      ...['--http2', '-w', '\\n%{http_version} %{response_code}', '-H', 'Content-Type: application/json'],
      ...['-H', 'X-API-Key: sk_test_0123456789abcdef', '-d', '{"name": "by h2c"}'],
      `${served.program.url}/api/v1/categories`,
    );
    assert.match(stdout, /"name":"by h2c"/);
    assert.match(stdout, /\n2 201$/);
  });

  for (const [option, said] of [
    ['--http2', '2'],
    ['--http1.1', '1.1'],
  ] as const) {
    test(`takes HTTP/${said} over TLS by ALPN`, async () => {
      const { stdout } = await curl(
        ...version,
        option,
        '--cacert',
        served.certificate,
        `${served.tlsUrl}/health/ready`,
      );
      assert.equal(stdout, `${said} 200 1\n`);
    });
  }

  test('tunnels to http and https through the cleartext port', async () => {
    const proxy = ['--proxytunnel', '--proxy', served.program.url, '--proxy-user', `${served.tunnelKey}:`];
    assert.equal((await curl(...proxy, `${served.destination}/a`)).stdout, 'GET /a');
    assert.equal(
      (await curl(...proxy, '--cacert', served.certificate, `${served.tlsDestination}/b`)).stdout,
      'GET /b',
    );
  });

  test('tunnels through the TLS port, TLS in TLS', async () => {
    const proxy = ['--proxytunnel', '--proxy', served.tlsUrl, '--proxy-cacert', served.certificate];
    const { stdout } = await curl(
      ...[...proxy, '--proxy-user', `${served.tunnelKey}:`, '--cacert', served.certificate],
      `${served.tlsDestination}/c`,
    );
    assert.equal(stdout, 'GET /c');
  });

  test('has a plain request for another server forwarded', async () => {
    const proxy = ['--proxy', served.program.url, '--proxy-user', `${served.tunnelKey}:`];
    assert.equal((await curl(...proxy, `${served.destination}/d?e`)).stdout, 'GET /d?e');
  });

  for (const [title, args, code] of [
    ['407 without credentials', [], '407'],
    ['407 with a bad key', ['--proxy-user', 'sk_test_nobody:'], '407'],
    ['403 for a private address', ['--proxy-user', 'KEY:', '10.1.2.3:443'], '403'],
  ] as const) {
    test(`is told ${title}`, async () => {
      const given = args.map((arg) => (arg === 'KEY:' ? `${served.tunnelKey}:` : arg));
      const target = given.find((arg) => arg.endsWith(':443')) ?? served.destination.slice('http://'.length);
      const { stdout, code: exit } = await curl(
        ...['-o', '/dev/null', '-w', '%{http_connect}', '--proxytunnel', '--proxy', served.program.url],
        ...given.filter((arg) => !arg.endsWith(':443')),
        `http://${target}/`,
      );
      assert.equal(stdout, code);
      assert.equal(exit, 56);
    });
  }
});

describe('nghttp', { skip: nghttpPath === undefined ? 'nghttp is not installed' : false }, () => {
  test('upgrades, and asks for two more on the same connection', async () => {
    const { stdout, code } = await runCommand(nghttpPath ?? '', [
      '-nvu',
      ready(),
      `${ready()}?2`,
      `${ready()}?3`,
    ]);
    assert.equal(code, 0);
    assert.match(stdout, /HTTP Upgrade success/);
    assert.equal(stdout.match(/:status: 200/g)?.length, 3);
    assert.equal(
      stdout.match(/recv SETTINGS frame <length=0, flags=0x01/g)?.length,
      1,
      'one acknowledgement',
    );
  });

  test('posts with an upgrade', async () => {
    const content = join(served.folder, 'content.json');
    writeFileSync(content, '{"name": "by nghttp"}');
    const { stdout } = await runCommand(nghttpPath ?? '', [
      ...['-vu', '-d', content, '-H', 'content-type: application/json'],
      ...['-H', 'x-api-key: sk_test_0123456789abcdef', `${served.program.url}/api/v1/categories`],
    ]);
    assert.match(stdout, /:status: 201/);
    assert.match(stdout, /"name":"by nghttp"/);
  });

  test('speaks with prior knowledge', async () => {
    const { stdout } = await runCommand(nghttpPath ?? '', ['-nv', ready()]);
    assert.match(stdout, /:status: 200/);
  });
});

describe('python3', { skip: pythonPath === undefined ? 'python3 is not installed' : false }, () => {
  const program = 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())';

  test('reaches https through the tunnel, by the variables that most programs read', async () => {
    const proxy = `http://key:${served.tunnelKey}@127.0.0.1:${served.program.port}`;
    const { stdout, stderr } = await runCommand(
      pythonPath ?? '',
      ['-c', program, `${served.tlsDestination}/from-python`],
      { https_proxy: proxy, no_proxy: '', SSL_CERT_FILE: served.certificate },
    );
    assert.equal(stdout, 'GET /from-python\n', stderr);
  });
});
