/** What a failing test shows of its exchanges with a server, which the answers that tests see do not carry. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { startServer } from '../../harness/running-server.ts';

test('an exchange is reported with the trace of its decisions, of which its answer says nothing', async () => {
  const reported: string[] = [];
  const report = (text: unknown): number => reported.push(String(text));
  const program = await startServer();
  subscribe('comity:exchange', report);
  try {
    const answer = await program.send('GET', '/api/v1/products/none');
    assert.equal(answer.headers['comity-trace'], undefined);
    assert.match(reported.join(), /^404\n(.+\n)*comity-trace: .+ exists creates_here$/m);
  } finally {
    unsubscribe('comity:exchange', report);
    await program.stop();
  }
});
