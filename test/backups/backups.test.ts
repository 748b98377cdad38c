/** Backups in a folder, where the store fails (§4.21.4). */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createBackups, type StoreBytes } from '../../src/backups/backups.ts';
import { createIdSource } from '../../src/model/id.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { servicesOver } from '../harness/services-over.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const clock = () => 1_800_000_000_000;

function backupsOf(backup: Store['backup'], storeBytes: StoreBytes = () => 0) {
  const folder = join(temporaryFolder(), 'backups');
  const newId = createIdSource(clock, () => 7);
  const given = { clock, newId, settings: { backupsMax: 3 } };
  const files = { place: undefined, placeName: '', bytes: () => 0 };
  return createBackups(servicesOver({ backup, shared: false }, given), folder, storeBytes, files);
}

function failing(cause: Error | undefined): Store['backup'] {
  return async () => {
    throw new StoreUnavailable('cannot write', { retryAfterSeconds: 1, cause });
  };
}

const fails = [
  [Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' }), 'backup_space_missing'],
  [new Error('database or disk is full'), 'backup_space_missing'],
  [Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' }), 'backup_failed'],
] as const;

for (const [cause, code] of fails) {
  test(`tells a copy that ends with "${cause.message}" as ${code}, and makes the next`, async () => {
    let isFailing = true;
    const backups = backupsOf(async (path, onProgress) => {
      if (isFailing) await failing(cause)(path, onProgress);
      writeFileSync(path, 'a copy');
    });
    const made = await backups.make();
    assert.ok('refused' in made && made.refused.code === code);
    isFailing = false;
    assert.ok('id' in (await backups.make()));
    assert.equal(backups.isBusy(), false);
  });
}

test('leaves a backup to the next process when the store closes meanwhile', async () => {
  const backups = backupsOf(failing(undefined));
  await assert.rejects(backups.make(), StoreUnavailable);
  assert.deepEqual(await backups.list(), []);
});

test('makes one copy at a time', async () => {
  let running = 0;
  let most = 0;
  const backups = backupsOf(async (path) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    writeFileSync(path, 'a copy');
    running -= 1;
  });
  const made = await Promise.all([backups.make(), backups.make(), backups.make(), backups.make()]);
  assert.deepEqual([most, made.filter((each) => 'refused' in each).length], [1, 1]);
  assert.equal((await backups.list()).length, 3);
});

test('keeps no backup beyond the limit that another process reached meanwhile', async () => {
  const others = ['a', 'b', 'c'].map((letter) => `20260801T093000Z_bak_${letter.repeat(26)}.db`);
  const backups = backupsOf(async (path) => {
    for (const other of others) writeFileSync(join(dirname(path), other), 'a copy of another process');
    writeFileSync(path, 'a copy');
  });
  const made = await backups.make();
  assert.ok('refused' in made && made.refused.code === 'backups_exhausted');
  assert.deepEqual(readdirSync(backups.folder).sort(), others);
});

test('refuses a backup if the disk has less space than the store needs', async () => {
  const copy = async () => assert.fail('a copy was begun');
  const backups = backupsOf(copy, () => Number.MAX_SAFE_INTEGER);
  const made = await backups.make();
  assert.ok('refused' in made && made.refused.code === 'backup_space_missing');
  assert.deepEqual(readdirSync(backups.folder), []);
});

test('does not blame the folder where the store does not tell its size', async () => {
  const copy = async () => assert.fail('a copy was begun');
  const backups = backupsOf(copy, () =>
    Promise.reject(new StoreUnavailable('256 long reads wait', { retryAfterSeconds: 1 })),
  );
  await assert.rejects(backups.obstacle(), StoreUnavailable);
});
