/** How often `/meta/store` (§4.21.5) makes the store report. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeResource } from '../../src/resources/program/meta-routes.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { askOf } from './ask.ts';

const limits = { validationErrorsMax: 1, jsonDepthMax: 1, jsonMembersMax: 1, decodedBytesMax: 1 };

test('gives one report to all who ask within ten seconds', async () => {
  let now = 1_800_000_000_000;
  let reports = 0;
  let isFailing = true;
  const services = {
    ...{ clock: () => now, settings: limits as never, disk: async () => undefined },
    store: {
      report: async () => {
        reports += 1;
        if (isFailing) throw new StoreUnavailable('busy', { retryAfterSeconds: 1 });
        return { bytes: 1, schemaVersion: 1, tables: [] };
      },
    },
  };
  const resource = storeResource(services, '/api/v1', [], async () => []);
  const operation = resource.operations.get('GET');
  const open = { exists: true, visible: true, permitted: true };
  const read = async () => operation?.propose?.(askOf({}), open, undefined);
  await assert.rejects(read(), StoreUnavailable);
  isFailing = false;
  await Promise.all([read(), read(), read()]);
  now += 9999;
  await read();
  assert.equal(reports, 2, 'a failed report is not kept');
  now += 1;
  await read();
  assert.equal(reports, 3);
});
