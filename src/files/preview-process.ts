/**
 * The process that makes previews, one after the other: a job over the channel to its parent, the octets of the image on its standard input,
 * and the preview as a new file. It is a process and no thread because the work of `sharp` in a thread cannot be stopped (docs/decisions/0107),
 * and because an error in the decoder of a format ends whatever runs it.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import process from 'node:process';
import type { Sharp } from 'sharp';
import type { WholePreviewRule } from '../model/file.ts';
import type { MadePreview, PreviewOrder, PreviewReply } from './preview-maker.ts';

/** Nice value: what serves requests goes first. */
const niceness = 10;
/** The killer of Linux ends this process before the one that serves requests. */
const outOfMemoryScore = '1000';

/** The loaders of the formats that previews are made of. All others of libvips are off, such as those of SVG, PDF and old formats. */
const loaders = ['Jpeg', 'Png', 'Webp', 'Nsgif', 'Tiff', 'Heif'].map(
  (name) => `VipsForeignLoad${name}Buffer`,
);

const white = { r: 255, g: 255, b: 255 };
const clear = { ...white, alpha: 0 };
/**
 * AVIF of 2,048 x 2,048 pixels of noise takes 1.0 s with 0, 5.4 s with 2 and 58 s with 4, the default of `sharp`; the last one is 8 % longer.
 */
const avifEffort = 2;

process.on('disconnect', () => process.exit());
try {
  setPriority(niceness);
  writeFileSync('/proc/self/oom_score_adj', outOfMemoryScore);
} catch {
  // Not Linux: it is then as likely to be ended as any other process.
}
const sharp = await load();
// The start of the program looks whether it can be loaded.
if (process.argv[2] === 'check') process.exit();
const input = process.stdin.iterator({ destroyOnReturn: false });
process.on('message', (order: PreviewOrder) => void work(order));

async function load() {
  const { default: loaded } = await import('sharp');
  loaded.concurrency(1);
  loaded.cache(false);
  loaded.block({ operation: ['VipsForeignLoad'] });
  loaded.unblock({ operation: loaders });
  return loaded;
}

async function work({ rule, bytes, pixelsMax, path }: PreviewOrder): Promise<void> {
  const octets = await take(bytes);
  let reply: PreviewReply;
  try {
    reply = { made: await make(octets, rule, pixelsMax, path) };
  } catch (error) {
    reply = { refused: error instanceof Error ? error.message : String(error) };
  }
  process.send?.(reply);
}

/** The octets of one image. The parent sends the next order after the reply, so that nothing follows them. */
async function take(bytes: number): Promise<Buffer> {
  const octets = Buffer.allocUnsafeSlow(bytes);
  for (let count = 0; count < bytes; ) {
    const { value, done } = await input.next();
    if (done === true) process.exit();
    count += (value as Buffer).copy(octets, count);
  }
  return octets;
}

async function make(
  octets: Buffer,
  rule: WholePreviewRule,
  limitInputPixels: number,
  path: string,
): Promise<MadePreview> {
  // Not `warning`, the default: it refuses photos with a few octets too many between two markers, as cameras write them.
  const image = sharp(octets, { limitInputPixels, failOn: 'error' });
  const { data, info } = await encode(fitted(image, rule), rule).toBuffer({ resolveWithObject: true });
  writeFileSync(path, data, { mode: 0o600 });
  const sha256 = createHash('sha256').update(data).digest('hex');
  return { bytes: data.length, sha256, width: info.width, height: info.height };
}

/** Upright, in sRGB of 8 bits, of the size of the rule. A small image is not enlarged to fit inside; what is padded is clear, in JPEG white. */
function fitted(image: Sharp, { width, height, fit, format }: WholePreviewRule): Sharp {
  const background = format === 'jpeg' ? white : clear;
  const sized = image
    .autoOrient()
    .resize({ width, height, fit, background, withoutEnlargement: fit === 'inside' })
    .toColourspace('srgb');
  return format === 'jpeg' ? sized.flatten({ background: white }) : sized;
}

/** `sharp` writes neither EXIF nor the place where a photo was taken, unless that is asked for. */
function encode(image: Sharp, { format, quality }: WholePreviewRule): Sharp {
  if (format === 'png') return image.png();
  if (format === 'jpeg') return image.jpeg({ quality });
  if (format === 'avif') return image.avif({ quality, effort: avifEffort });
  return image.webp({ quality });
}
