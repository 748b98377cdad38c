/** Processes of previews that are late, that are killed, and what they need at most. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import sharp from 'sharp';
import { openFolderPlace } from '../../../src/files/folder-place.ts';
import { createPreviews, type PreviewedFile } from '../../../src/files/previews.ts';
import type { PreviewRule } from '../../../src/model/file.ts';
import { keepNew } from '../../files/place-contract.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const place = await openFolderPlace(temporaryFolder());
after(() => place.close());
let now = Date.now();

function previewsWithin(previewTimeoutMs: number) {
  const previews = createPreviews(place, {
    settings: {
      previewProcesses: 1,
      previewsWaitingMax: 100,
      previewTimeoutMs,
      previewSourcePixelsMax: 50_000_000,
      previewSourceBytesMax: 512 * 1024 * 1024,
    },
    random: randomBytes,
    clock: () => now,
  });
  after(() => previews.close());
  return previews;
}

async function keep(octets: Buffer, type: string): Promise<PreviewedFile> {
  const { id, key, bytes } = await keepNew(place, octets);
  return { id, key, bytes, type };
}

const noise = (width: number, height: number) =>
  sharp({
    create: {
      ...{ width, height, channels: 3, background: '#f00' },
      noise: { type: 'gaussian', mean: 128, sigma: 40 },
    },
  });
const small: PreviewRule = { width: 40, height: 40 };

/** The file is read well within it beside other tests; the image takes several times as long. */
const lateMs = 4000;
/** Pixels: long enough work to be killed in twice on a fast machine, and far below the time limit beside other tests. */
const side = 1200;

describe('a process of previews', () => {
  test('that is late is ended, the image is not tried again at once, and the next one is made', async () => {
    const previews = previewsWithin(lateMs);
    const file = await keep(await noise(3000, 3000).jpeg().toBuffer(), 'image/jpeg');
    const rule: PreviewRule = { width: 3000, height: 3000, format: 'avif', quality: 100 };
    const message = `it takes longer than ${lateMs} ms (COMITY_PREVIEW_TIMEOUT_MS)`;
    await assert.rejects(previews.open(file, rule, 'x'), { name: 'PreviewRefused', message });
    await until(() => processes().length === 0);
    const begun = performance.now();
    await assert.rejects(previews.open(file, rule, 'x'), { name: 'PreviewRefused', message });
    assert.ok(performance.now() - begun < 1000, 'known, without another attempt');
    assert.deepEqual(processes(), []);
    const other = await keep(await noise(50, 50).png().toBuffer(), 'image/png');
    assert.equal((await previews.open(other, small, 'x')).type, 'image/webp');
    now += 600_001;
    await assert.rejects(previews.open(file, rule, 'x'), { name: 'PreviewRefused', message });
  });

  test('that is killed is replaced, once for a preview', async () => {
    const previews = previewsWithin(60_000);
    const rule: PreviewRule = { width: side, height: side, format: 'avif' };
    for (const kills of [1, 2]) {
      const file = await keep(await noise(side, side).jpeg().toBuffer(), 'image/jpeg');
      const opened = previews.open(file, rule, 'x').then(
        ({ type }) => type,
        (error: Error) => error.message,
      );
      for (let count = 0; count < kills; count += 1) {
        await until(() => processes().some(({ seconds }) => seconds > 0.5));
        const killed = processes().map(({ id }) => id);
        for (const id of killed) process.kill(id, 'SIGKILL');
        await until(() => processes().every(({ id }) => !killed.includes(id)));
      }
      assert.equal(await opened, kills === 1 ? 'image/avif' : 'the process that makes it ended twice');
    }
  });

  test('needs less memory than the settings say, for the largest images', async (context) => {
    const [width, height] = [8192, 6100];
    // Noise of the whole size takes 12 s to make: only PNG would find what repeats in it.
    const tile = await noise(1024, 1024).png().toBuffer();
    const large = () =>
      sharp(tile).extend({ right: width - 1024, bottom: height - 1024, extendWith: 'repeat' });
    const images = {
      'image/jpeg': large().jpeg({ progressive: true }),
      'image/png': noise(width, height)
        .ensureAlpha()
        .toColourspace('rgb16')
        .png({ progressive: true, compressionLevel: 1 }),
      'image/webp': large().webp({ effort: 0 }),
      'image/tiff': large().ensureAlpha().tiff({ compression: 'none', tile: true }),
    };
    for (const [type, image] of Object.entries(images)) {
      const file = await keep(await image.toBuffer(), type);
      // The most that a process ever had stays: each image has its own.
      const previews = previewsWithin(60_000);
      const begun = performance.now();
      await previews.open(file, small, 'x');
      const ms = Math.round(performance.now() - begun);
      const megabytes = Math.max(...processes().map((each) => each.megabytesMost));
      await previews.close();
      context.diagnostic(`${type}, ${file.bytes} octets: ${ms} ms, ${megabytes} MB`);
      assert.ok(megabytes < 160 + (file.bytes + 8 * width * height) / 1e6, `${type}: ${megabytes} MB`);
    }
  });
});

type Process = { readonly id: number; readonly seconds: number; readonly megabytesMost: number };

/** Processes of this one that make previews. */
function processes(): readonly Process[] {
  const ids = readdirSync('/proc').filter((name) => Number(name) > 0);
  return ids.flatMap((id) => {
    try {
      const [, fields = ''] = readFileSync(`/proc/${id}/stat`, 'utf8').split(') ');
      const [, parent, , , , , , , , , , user] = fields.split(' ');
      const isOurs = Number(parent) === process.pid;
      if (!(isOurs && readFileSync(`/proc/${id}/cmdline`, 'utf8').includes('preview-process'))) return [];
      const [, most] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${id}/status`, 'utf8')) ?? [];
      return [
        { id: Number(id), seconds: Number(user) / 100, megabytesMost: Math.round(Number(most) / 1000) },
      ];
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}
