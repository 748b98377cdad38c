/**
 * The proxies of deploy/ before two programs on one database, as their files stand there but for ports, files and names: one program after the
 * other is stopped and started again, and no request fails. It runs alone, because beside other tests a probe may come later than the delay of
 * the drain. What is not installed is skipped, and says so.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { cert, key } from '../../accounts/mail/certificate.ts';
import { adminKey } from '../../harness/exchange.ts';
import { emptyDatabase } from '../../harness/postgres-database.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { freePort } from '../../wire/free-port.ts';
import { findCommand } from '../clients/command.ts';

type Place = { readonly folder: string; readonly port: number };

type Proxy = {
  readonly command: string;
  readonly file: string;
  /** What the file shows, and what stands there in the test. */
  edits(place: Place): Readonly<Record<string, string>>;
  around?(place: Place): readonly [string, string];
  args(place: Place, file: string): readonly string[];
};

const proxies: readonly Proxy[] = [
  {
    command: 'nginx',
    file: 'nginx.conf',
    edits: ({ folder, port }) => ({
      '/etc/ssl/shop.example.pem': join(folder, 'cert.pem'),
      '/etc/ssl/shop.example.key': join(folder, 'key.pem'),
      'listen 443': `listen 127.0.0.1:${port}`,
      'server_name shop.example': 'server_name localhost',
    }),
    around: ({ folder }) => {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${join(folder, name)};`,
      );
      return [
        `daemon off; user ${userInfo().username}; pid ${join(folder, 'pid')}; error_log stderr; worker_processes 1;
events { worker_connections 64; } http { access_log off; ${temporary.join(' ')}\n`,
        '}',
      ];
    },
    args: ({ folder }, file) => ['-p', folder, '-e', 'stderr', '-c', file],
  },
  {
    command: 'haproxy',
    file: 'haproxy.cfg',
    edits: ({ folder, port }) => ({
      '/etc/ssl/shop.example.pem': join(folder, 'both.pem'),
      'bind :443': `bind 127.0.0.1:${port}`,
    }),
    args: (_place, file) => ['-db', '-f', file],
  },
  {
    command: 'caddy',
    file: 'Caddyfile',
    edits: ({ folder, port }) => ({
      'shop.example {': `https://localhost:${port} {\n  tls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}`,
    }),
    around: () => ['{\n  admin off\n  auto_https disable_redirects\n}\n', ''],
    args: (_place, file) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
];

let url = '';
const programs: ServerProcess[] = [];

/** One program of two, at the port of its number. */
function startProgram(port: string): Promise<ServerProcess> {
  return spawnServer({
    env: {
      COMITY_DATABASE_URL: url,
      COMITY_PORT: port,
      COMITY_BEHIND_PROXY: 'on',
      COMITY_RATE_LIMIT_WRITES: '0',
      COMITY_RATE_LIMIT_READS: '0',
      COMITY_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
      // More than a proxy takes to look again, which is a second.
      COMITY_DRAIN_DELAY_SECONDS: '3',
    },
  });
}

before(async () => {
  ({ url } = await emptyDatabase());
  for (let number = 0; number < 2; number += 1) programs.push(await startProgram(String(await freePort())));
});

after(async () => {
  for (const program of programs) await program.kill();
});

for (const proxy of proxies) {
  const path = findCommand(proxy.command);
  const skip = path === undefined ? `${proxy.command} is not installed` : false;
  describe(`behind ${proxy.command}`, { skip }, () => {
    let child: ChildProcess;
    let port = 0;
    const dispatcher = new Agent({ allowH2: false, connect: { ca: cert } });

    before(async () => {
      const folder = temporaryFolder();
      port = await freePort();
      writeFileSync(join(folder, 'cert.pem'), cert);
      writeFileSync(join(folder, 'key.pem'), key);
      writeFileSync(join(folder, 'both.pem'), cert + key);
      const file = join(folder, proxy.file);
      writeFileSync(file, configurationOf(proxy, { folder, port }));
      child = spawn(path ?? '', proxy.args({ folder, port }, file), {
        detached: true,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { HOME: folder, PATH: process.env.PATH },
      });
      let told = '';
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        told += text;
      });
      await until(() => {
        assert.equal(child.exitCode, null, `${proxy.command} did not start: ${told}`);
        return ask('GET', '/health/ready').then(
          (status) => status === 200,
          () => false,
        );
      });
    });

    after(async () => {
      await dispatcher.destroy();
      if (child.exitCode === null) {
        process.kill(-(child.pid ?? assert.fail()), 'SIGKILL');
        await once(child, 'exit');
      }
    });

    async function ask(method: 'GET' | 'POST', target: string): Promise<number> {
      const { statusCode, body } = await request(`https://localhost:${port}${target}`, {
        method,
        dispatcher,
        headers: { 'x-api-key': adminKey, 'content-type': 'application/json' },
        ...(method === 'POST' && { body: JSON.stringify({ name: `c${Math.random()}` }) }),
      });
      await body.dump();
      return statusCode;
    }

    test('no request fails while each program is stopped and started again', async () => {
      const outcomes = new Map<string, number>();
      let isOver = false;
      const client = async (method: 'GET' | 'POST', wanted: number): Promise<void> => {
        while (!isOver) {
          const outcome = await ask(method, '/api/v1/categories').catch((error: Error) => error.message);
          if (outcome !== wanted)
            outcomes.set(`${method} ${outcome}`, (outcomes.get(`${method} ${outcome}`) ?? 0) + 1);
          else outcomes.set('as wanted', (outcomes.get('as wanted') ?? 0) + 1);
          await delay(5);
        }
      };
      const clients = [client('GET', 200), client('GET', 200), client('POST', 201), client('POST', 201)];
      for (const [index, program] of programs.entries()) {
        assert.equal(await program.stop(), 0);
        await delay(500);
        programs[index] = await startProgram(String(program.port));
        // The proxy takes it back before the other one goes.
        await delay(6000);
      }
      isOver = true;
      await Promise.all(clients);
      const { size } = outcomes;
      assert.ok((outcomes.get('as wanted') ?? 0) > 200, JSON.stringify([...outcomes]));
      assert.equal(size, 1, JSON.stringify([...outcomes]));
    });
  });
}

/** The file of deploy/; every place that the test changes is there. */
function configurationOf(proxy: Proxy, place: Place): string {
  let text = readFileSync(join('deploy', proxy.file), 'utf8');
  const [one, other] = programs;
  const edits = {
    ...proxy.edits(place),
    '127.0.0.1:4001': `127.0.0.1:${one?.port}`,
    '127.0.0.1:4002': `127.0.0.1:${other?.port}`,
  };
  for (const [shown, used] of Object.entries(edits)) {
    assert.ok(text.includes(shown), `${proxy.file} has ${shown}`);
    text = text.replaceAll(shown, used);
  }
  const [start = '', end = ''] = proxy.around?.(place) ?? [];
  return start + text + end;
}
