import assert from 'node:assert/strict';
import test from 'node:test';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { schedulesDefault } from '../../../src/config/webhook-schedules.ts';
import { storeTables } from '../../../src/store-tables.ts';
import { sendingRetention } from '../../../src/webhooks/sending/sending-tables.ts';

const { settings } = loadSettings({}, {});

test('keeps deliveries and attempts as long as the setting says, in tables that the store has', () => {
  const rules = sendingRetention({ deliveryRetentionSeconds: 7200 });
  const secondsOf = new Map(rules.map(({ table, seconds }) => [table, seconds]));
  assert.equal(secondsOf.get('deliveries'), 7200);
  assert.equal(secondsOf.get('attempts'), 7200);
  const names = new Set(storeTables({ collections: new Map() }).map(({ name }) => name));
  for (const { table, seconds } of rules) assert.ok(names.has(table) && seconds > 0, table);
});

test('keeps by default what may be sent again: by schedule, by hand and from the command line', () => {
  const { deliveryRetentionSeconds, eventRetentionSeconds, resendSeconds, resendCommandLineSeconds } =
    settings;
  const longest = Math.max(
    ...Object.values(schedulesDefault).map((delays) => delays.reduce((sum, each) => sum + each, 0)),
  );
  assert.ok(resendSeconds <= resendCommandLineSeconds);
  for (const kept of [deliveryRetentionSeconds, eventRetentionSeconds]) {
    assert.ok(kept >= resendCommandLineSeconds && kept > longest * 1.1);
  }
});
