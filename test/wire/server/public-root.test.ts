/** A public URL with a path, behind a proxy that removes the path (docs/guides/behind-a-proxy.md). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type PrefixProxy, startPrefixProxy } from '../../harness/prefix-proxy.ts';
import { followEachUrl, root, sendTo, startBehindRoot } from '../../harness/public-root.ts';
import type { RunningServer } from '../../harness/running-server.ts';

let program: RunningServer;
let proxy: PrefixProxy;

before(async () => {
  proxy = await startPrefixProxy(root);
  program = await startBehindRoot();
  proxy.lead(program.port);
});

after(async () => {
  await proxy?.close();
  await program?.stop();
});

followEachUrl(() => proxy.url);

for (const [path, status] of [
  ['/api/v1/albums', 200],
  ['/backend/api/v1/albums', 200],
  ['/backend', 200],
  ['/backend/', 200],
  ['/backend/backend/api/v1/albums', 404],
  ['/backendapi/v1/albums', 404],
  ['/other/api/v1/albums', 404],
  ['/backend/%2e%2e/api/v1/albums', 400],
] as const) {
  test(`a request that reaches the program as ${path} is answered ${status}`, async () => {
    const answer = await program.send('GET', path);
    assert.equal(answer.status, status, answer.body);
  });
}

test('the prefix of the proxy is no path of the program', async () => {
  assert.equal((await sendTo(proxy.url, 'GET', '/api/v1/albums')).text, 'outside');
});
