/** A public URL with a path behind nginx, by its file in examples/proxies with the `location` of docs/guides/behind-a-proxy.md. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe } from 'node:test';
import { followEachUrl, startBehindRoot } from '../../harness/public-root.ts';
import type { RunningServer } from '../../harness/running-server.ts';
import { findCommand } from './command.ts';
import { nginx, type RunningProxy, startProxy } from './proxy-program.ts';

const whole = readFileSync('examples/proxies/nginx.conf', 'utf8');
const guide = readFileSync('docs/guides/behind-a-proxy.md', 'utf8');
const [, location = ''] = /```nginx\n(location \/backend\/[\s\S]*?)```/.exec(guide) ?? [];
const path = findCommand(nginx.command);

describe('nginx under a path', { skip: path === undefined ? 'nginx is not installed' : false }, () => {
  let program: RunningServer;
  let proxy: RunningProxy;

  before(async () => {
    const shown = whole
      .replace(/ {2}location \/ \{[\s\S]*?\n {2}\}/, location)
      .replace('listen 443 ssl http2', 'listen 443')
      .replaceAll(/ {2}ssl_certificate.*\n/g, '');
    assert.ok(shown.includes('location /backend/'));
    program = await startBehindRoot();
    const plain = {
      ...nginx,
      edits: (place: Parameters<typeof nginx.edits>[0]) => {
        const { 'listen 443': listens = '', 'server_name shop.example': name = '' } = nginx.edits(place);
        return { 'listen 443': listens, 'server_name shop.example': name };
      },
    };
    const more = { '127.0.0.1:4000': `127.0.0.1:${program.port}` };
    proxy = await startProxy(plain, path ?? '', shown, more, async (port) => {
      const answer = await fetch(`http://127.0.0.1:${port}/backend/health/live`).catch(() => undefined);
      return answer?.status === 200;
    });
  });

  after(async () => {
    await proxy?.stop();
    await program?.stop();
  });

  followEachUrl(() => `http://127.0.0.1:${proxy.port}`);
});
