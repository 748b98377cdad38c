/** `comity listen` as a process, since a signal ends it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startReceiver } from '../../../examples/receiver/start-receiver.ts';
import { runCommand, spawnCommand } from '../../harness/command-line.ts';
import { adminKey } from '../../harness/exchange.ts';
import { startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';

test('forwards events to a program on this machine, signed with a secret of its own, until a signal', async (t) => {
  const target = await startReceiver();
  t.after(() => target.close());
  const server = await startServer();
  t.after(() => server.stop());
  const trigger = async (type: string, data: string): Promise<{ readonly id: string }> => {
    const { code, stdout, stderr } = await runCommand(['events', 'trigger', type, '--data', data, '--json'], {
      COMITY_URL: server.url,
      COMITY_ADMIN_KEY: adminKey,
    });
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const args = ['listen', '--forward-to', `${target.url}/ok/local`, '--events', 'local.*', '--json'];
  const command = spawnCommand(args, { COMITY_URL: server.url, COMITY_ADMIN_KEY: adminKey });
  t.after(() => command.process.kill('SIGKILL'));
  await until(() => /secret whsec_\S+\n/.test(command.stderr()), 'the secret is told');
  target.trust(/secret (whsec_\S+)\n/.exec(command.stderr())?.[1] ?? '');
  const other = await trigger('elsewhere.done', '{}');
  const posted = await trigger('local.done', '{"id": "x"}');
  await target.until((all) => all.length === 1);
  command.process.kill('SIGINT');
  const { code, stdout, stderr } = await command.ended;
  assert.equal(code, 0);
  const [came] = target.received;
  assert.deepEqual([came?.id, came?.type, came?.verdict], [posted.id, 'local.done', 'verified']);
  assert.deepEqual(JSON.parse(came?.body ?? '').data, { id: 'x' });
  const { id, status } = JSON.parse(stdout);
  assert.deepEqual([id, status], [posted.id, 204]);
  assert.ok(!stdout.includes(other.id));
  assert.match(stderr, /comity: 1 events forwarded, 1 of them accepted\n$/);
});
