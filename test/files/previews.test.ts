import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { copyFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, describe, test } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { openFolderPlace } from '../../src/files/folder-place.ts';
import { FileMissing, isPreviewKey, type Place, placePrefix } from '../../src/files/place.ts';
import { PreviewRefused } from '../../src/files/preview-maker.ts';
import {
  createPreviews,
  explainStart,
  type PreviewedFile,
  previewsMistake,
} from '../../src/files/previews.ts';
import type { PreviewRule } from '../../src/model/file.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { keepNew, keysOf } from './place-contract.ts';

const settingsDefault = {
  previewProcesses: 1,
  previewsWaitingMax: 100,
  previewTimeoutMs: 20_000,
  previewSourcePixelsMax: 50_000_000,
  previewSourceBytesMax: 64 * 1024 * 1024,
};
const small: PreviewRule = { width: 40, height: 40 };

const place = await openFolderPlace(temporaryFolder());

const now = Date.now();
function previewsWith(settings: Partial<typeof settingsDefault> = {}, kept: Place = place) {
  return createPreviews(kept, {
    settings: { ...settingsDefault, ...settings },
    random: randomBytes,
    clock: () => now,
  });
}
const previews = previewsWith();
after(async () => {
  await previews.close();
  await place.close();
});

async function keep(octets: Buffer, type: string): Promise<PreviewedFile> {
  const { id, key, bytes } = await keepNew(place, octets);
  return { id, key, bytes, type };
}

async function preview(octets: Buffer, type: string, rule: PreviewRule = small, by = previews) {
  const made = await by.open(await keep(octets, type), rule, 'someone');
  const content = await buffer((await made.read(0, made.bytes)) as NodeJS.ReadableStream);
  assert.equal(content.length, made.bytes);
  assert.equal(made.sha256, createHash('sha256').update(content).digest('hex'));
  return { type: made.type, content, metadata: await sharp(content).metadata() };
}

function refusal(octets: Buffer, type: string, by = previews): Promise<string> {
  return preview(octets, type, small, by).then(
    () => assert.fail('a preview was made'),
    (error) => {
      assert.ok(error instanceof PreviewRefused, String(error));
      return error.message;
    },
  );
}

const colour = (width: number, height: number, background: string): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background } })
    .png()
    .toBuffer();

/** The colours of two pixels of a picture. */
async function pixels(content: Buffer, ...places: readonly (readonly [x: number, y: number])[]) {
  const { data, info } = await sharp(content).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return places.map(([x, y]) => {
    const at = (y * info.width + x) * info.channels;
    const [red = 0, green = 0, blue = 0] = data.subarray(at);
    return `${red > 127 ? 'r' : ''}${green > 127 ? 'g' : ''}${blue > 127 ? 'b' : ''}`;
  });
}

/** A PNG whose header says a size, with a few octets of pixels. */
function pngOf(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const typed = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(typed));
    return Buffer.concat([length, typed, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(1, 8);
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  const data = chunk('IDAT', deflateSync(Buffer.alloc(1000)));
  return Buffer.concat([signature, chunk('IHDR', header), data, chunk('IEND', Buffer.alloc(0))]);
}

describe('a preview', () => {
  test('of a turned photo is upright, and does not say where it was taken', async () => {
    // Red above green; the camera was turned, and says so.
    const upright = await sharp(await colour(60, 60, '#f00'))
      .extend({ bottom: 60, background: '#0f0' })
      .png()
      .toBuffer();
    const turned = await sharp(upright).rotate(270).png().toBuffer();
    const photo = await sharp(turned)
      .jpeg()
      .withMetadata({ orientation: 6 })
      .withExifMerge({ IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 0/1' } })
      .toBuffer();
    const before = await sharp(photo).metadata();
    assert.deepEqual([before.width, before.height, before.orientation], [120, 60, 6]);
    const { content, metadata, type } = await preview(photo, 'image/jpeg');
    assert.equal(type, 'image/webp');
    assert.deepEqual([metadata.width, metadata.height, metadata.orientation], [20, 40, undefined]);
    assert.equal(metadata.exif, undefined);
    assert.deepEqual(await pixels(content, [10, 5], [10, 35]), ['r', 'g']);
  });

  test('of an animation is its first frame', async () => {
    const frames = [await colour(50, 50, '#00f'), await colour(50, 50, '#f00')];
    const animation = await sharp(frames, { join: { animated: true } })
      .gif({ delay: [100, 100] })
      .toBuffer();
    assert.equal((await sharp(animation).metadata()).pages, 2);
    const { content, metadata } = await preview(animation, 'image/gif');
    assert.deepEqual([metadata.width, metadata.height, metadata.pages], [40, 40, undefined]);
    assert.deepEqual(await pixels(content, [20, 20]), ['b']);
  });

  test('of a photo in CMYK is in sRGB', async () => {
    const photo = await sharp(await colour(50, 50, '#f00'))
      .toColourspace('cmyk')
      .jpeg()
      .toBuffer();
    assert.equal((await sharp(photo).metadata()).space, 'cmyk');
    for (const format of ['webp', 'jpeg', 'png', 'avif'] as const) {
      const { content, metadata, type } = await preview(photo, 'image/jpeg', { ...small, format });
      assert.deepEqual([type, metadata.space], [`image/${format}`, 'srgb']);
      assert.deepEqual(await pixels(content, [20, 20]), ['r']);
    }
  });

  test('of one pixel stays one pixel inside, and covers what it has to', async () => {
    const pixel = await colour(1, 1, '#f00');
    for (const [rule, size] of [
      [small, [1, 1]],
      [{ ...small, height: 20, fit: 'cover' }, [40, 20]],
      [{ ...small, height: 20, fit: 'contain' }, [40, 20]],
    ] as const) {
      const { metadata } = await preview(pixel, 'image/png', rule);
      assert.deepEqual([metadata.width, metadata.height], size);
    }
  });

  test('that is padded is clear around the picture, and white in JPEG', async () => {
    const wide = await colour(80, 20, '#f00');
    const clear = await sharp({ create: { width: 8, height: 8, channels: 4, background: '#0000' } })
      .png()
      .toBuffer();
    const padded = await preview(wide, 'image/png', { ...small, fit: 'contain', format: 'jpeg' });
    assert.deepEqual(await pixels(padded.content, [20, 2], [20, 20]), ['rgb', 'r']);
    const kept = await preview(wide, 'image/png', { ...small, fit: 'contain' });
    assert.equal(kept.metadata.hasAlpha, true);
    const flat = await preview(clear, 'image/png', { ...small, format: 'jpeg' });
    assert.deepEqual(await pixels(flat.content, [4, 4]), ['rgb']);
    const { metadata } = await preview(clear, 'image/png', { ...small, format: 'png' });
    assert.equal(metadata.hasAlpha, true);
  });

  for (const format of ['tiff', 'avif', 'webp'] as const) {
    test(`is made of ${format}`, async () => {
      const image = await sharp(await colour(80, 40, '#0f0'))
        .toFormat(format)
        .toBuffer();
      const { content, metadata } = await preview(image, `image/${format}`);
      assert.deepEqual([metadata.width, metadata.height], [40, 20]);
      assert.deepEqual(await pixels(content, [20, 10]), ['g']);
    });
  }
});

describe('there is no preview', () => {
  test('of an image with more pixels than the setting, whatever it holds', async () => {
    const message = 'the image has more than 50000000 pixels (COMITY_PREVIEW_SOURCE_PIXELS_MAX)';
    assert.equal(await refusal(pngOf(50_000, 50_000), 'image/png'), message);
    const few = previewsWith({ previewSourcePixelsMax: 100 });
    after(() => few.close());
    assert.equal((await preview(await colour(10, 10, '#f00'), 'image/png', small, few)).metadata.width, 10);
    assert.match(
      await refusal(await colour(101, 1, '#f00'), 'image/png', few),
      /^the image has more than 100 pixels/,
    );
  });

  test('of a longer image than the setting', async () => {
    const image = await colour(10, 10, '#f00');
    for (const [bytes, isMade] of [
      [image.length, true],
      [image.length - 1, false],
    ] as const) {
      const bounded = previewsWith({ previewSourceBytesMax: bytes });
      if (isMade) await preview(image, 'image/png', small, bounded);
      else
        assert.match(
          await refusal(image, 'image/png', bounded),
          /^the image has \d+ octets, .* at most \d+ \(COMITY_PREVIEW_SOURCE_BYTES_MAX\)$/,
        );
      await bounded.close();
    }
  });

  test('of an image that is cut', async () => {
    const options = {
      create: {
        width: 200,
        height: 200,
        channels: 3,
        background: '#f00',
        noise: { type: 'gaussian', mean: 128, sigma: 40 },
      },
    } as const;
    for (const format of ['jpeg', 'png', 'webp', 'gif', 'tiff', 'avif'] as const) {
      const image = await sharp(options).toFormat(format).toBuffer();
      const message = await refusal(image.subarray(0, image.length / 2), `image/${format}`);
      assert.match(message, /^the image is damaged or not whole$|^the content is no image/, format);
    }
  });

  test('of SVG, of HEIC, and of what is no image, with a sentence each', async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    assert.equal(
      await refusal(svg, 'image/svg+xml'),
      'an SVG is a document that may refer to others, and has any size: show the file itself',
    );
    assert.equal(
      await refusal(Buffer.alloc(9), 'image/heic'),
      'HEIC is compressed by HEVC, which sharp does not decode; send the photo as JPEG',
    );
    assert.equal(
      await refusal(Buffer.alloc(9), 'application/pdf'),
      'a file of the type application/pdf is no image that previews are made of',
    );
  });

  test('of an SVG or noise that a row calls PNG', async () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    for (const octets of [svg, randomBytes(999), Buffer.from('%PDF-1.4\n')]) {
      assert.equal(await refusal(octets, 'image/png'), 'the content is no image that previews are made of');
    }
  });
});

describe('previews', () => {
  test('are made once for all who ask, and found by those who come later', async () => {
    const file = await keep(await colour(300, 300, '#f00'), 'image/png');
    const asked = Array.from({ length: 50 }, (_, at) => previews.open(file, small, `caller ${at}`));
    const opened = await Promise.all(asked);
    assert.equal(new Set(opened.map(({ sha256 }) => sha256)).size, 1);
    const keys = await keysOf(place, placePrefix(file.id));
    const { ino } = statOf(keys.find(isPreviewKey) ?? '');
    assert.equal(keys.length, 2);
    const later = previewsWith({ previewTimeoutMs: 100 });
    assert.equal((await later.open(file, small, 'another process')).sha256, opened[0]?.sha256);
    await later.close();
    assert.equal(statOf(keys.find(isPreviewKey) ?? '').ino, ino, 'not made again');
    await previews.open(file, { ...small, quality: 20 }, 'someone');
    await previews.open(file, { ...small, fit: 'inside', quality: 80 }, 'the same rule in other words');
    assert.equal((await keysOf(place, placePrefix(file.id))).length, 3);
  });

  test('are read in parts', async () => {
    const { read, bytes } = await previews.open(
      await keep(await colour(90, 90, '#f00'), 'image/png'),
      small,
      'x',
    );
    const all = await buffer((await read(0, bytes)) as NodeJS.ReadableStream);
    assert.deepEqual(await buffer((await read(4, 9)) as NodeJS.ReadableStream), all.subarray(4, 9));
  });

  test('leave nothing beside the place', async () => {
    assert.deepEqual(readdirSync(place.incoming), []);
  });

  test('are made again after somebody removed them', async () => {
    const file = await keep(await colour(90, 90, '#f00'), 'image/png');
    const { read, bytes } = await previews.open(file, small, 'x');
    for (const key of await keysOf(place, placePrefix(file.id)))
      if (isPreviewKey(key)) await place.remove(key);
    await assert.rejects(read(0, bytes), FileMissing);
    const again = await previews.open(file, small, 'x');
    assert.equal((await buffer((await again.read(0, bytes)) as NodeJS.ReadableStream)).length, bytes);
  });

  test('go with a file that is removed while they are made', async () => {
    const file = await keep(await colour(90, 90, '#f00'), 'image/png');
    const removing: Place = Object.assign(Object.create(place), {
      async keep(key: string, made: Parameters<Place['keep']>[1]) {
        await place.keep(key, made);
        await place.remove(file.key);
      },
    });
    Object.defineProperty(removing, 'incoming', { value: place.incoming });
    for (const name of ['read', 'remove', 'list'] as const)
      Object.defineProperty(removing, name, { value: place[name].bind(place) });
    const beside = previewsWith({}, removing);
    await assert.rejects(beside.open(file, small, 'x'), FileMissing);
    await beside.close();
    assert.deepEqual(await keysOf(place, placePrefix(file.id)), []);
  });

  test('of a file whose octets are lost fail as the file does', async () => {
    const file = await keep(await colour(90, 90, '#f00'), 'image/png');
    await place.remove(file.key);
    await assert.rejects(previews.open(file, small, 'x'), FileMissing);
    const short = await keep(await colour(91, 90, '#f00'), 'image/png');
    await assert.rejects(previews.open({ ...short, bytes: short.bytes + 1 }, small, 'x'), FileMissing);
    await preview(await colour(92, 90, '#f00'), 'image/png');
  });

  test('wait up to the setting; then 503 says when to come back', async () => {
    const narrow = previewsWith({ previewsWaitingMax: 2 });
    after(() => narrow.close());
    const files = await Promise.all(
      [1, 2, 3, 4].map(async (side) => keep(await colour(side, side, '#f00'), 'image/png')),
    );
    const outcomes = await Promise.allSettled(files.map((file) => narrow.open(file, small, 'x')));
    const refused = outcomes.filter((each) => each.status === 'rejected');
    assert.equal(refused.length, 1);
    assert.ok(refused[0]?.reason instanceof StoreUnavailable);
    assert.equal(refused[0].reason.message, 'too many previews wait to be made');
  });

  test('end their processes at close', async () => {
    const closed = previewsWith();
    await preview(await colour(9, 9, '#f00'), 'image/png', small, closed);
    await closed.close();
    await assert.rejects(
      closed.open(await keep(await colour(8, 9, '#f00'), 'image/png'), small, 'x'),
      StoreUnavailable,
    );
  });

  test('that an earlier process did not finish are removed after an hour', async () => {
    const [old, young] = ['file_a.00.preview', 'file_b.00.preview'].map((name) => join(place.incoming, name));
    for (const path of [old, young]) writeFileSync(path ?? '', 'x');
    utimesSync(young ?? '', now / 1000, now / 1000);
    utimesSync(old ?? '', now / 1000 - 3601, now / 1000 - 3601);
    const next = previewsWith();
    await preview(await colour(7, 9, '#f00'), 'image/png', small, next);
    await next.close();
    assert.deepEqual(readdirSync(place.incoming), ['file_b.00.preview']);
    rmSync(young ?? '');
  });
});

describe('a declaration of previews', () => {
  test('is no mistake where sharp is installed, and none without previews', async () => {
    assert.equal(await previewsMistake(['tickets.photo']), undefined);
    assert.equal(await previewsMistake([]), undefined);
  });

  test('is refused with the command that installs sharp where it is missing, or does not run', () => {
    const folder = temporaryFolder();
    copyFileSync(new URL('../../src/files/preview-process.ts', import.meta.url), join(folder, 'process.ts'));
    const end = spawnSync(process.execPath, ['process.ts', 'check'], {
      cwd: folder,
      env: {},
      encoding: 'utf8',
    });
    assert.equal(end.status, 1);
    const remedy = 'npm install sharp; or remove the previews of tickets.photo, users.portrait';
    const fields = ['tickets.photo', 'users.portrait'];
    assert.equal(
      explainStart(end.stderr, fields),
      `previews need a package that is not installed: ${remedy}`,
    );
    assert.equal(
      explainStart('at x\n\nError: Could not load the "sharp" module using the linux-x64 runtime\n', fields),
      `previews need sharp, which cannot be loaded (Could not load the "sharp" module using the linux-x64 runtime): ${remedy}`,
    );
  });
});

function statOf(key: string): { readonly ino: number } {
  const path = join(place.incoming, '..', key);
  return { ino: Number(execFileSync('stat', ['-c', '%i', path]).toString()) };
}
