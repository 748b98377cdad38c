#!/usr/bin/env bash
# sharp().timeout({ seconds: 1 }), and terminate() of a thread that runs sharp, while an image becomes AVIF.
#
# Guess: processing is stopped after about a second, as the documentation of `timeout` says, and a thread ends when it is told to.
# Seen (sharp 0.35.5, Node.js 26): a picture of 1,000 x 1,000 pixels of noise becomes JPEG, WebP or PNG within the second. As AVIF the work
# goes on to its end, some 15 seconds on one processor; then `toBuffer` has the picture and no error about a timeout. terminate() resolves
# when that work is done, and so does the end of the process, because libvips works in the thread pool of libuv. Only another process can be
# stopped.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund sharp@0.35.5
cat >look.mjs <<'JS'
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import sharp from 'sharp';

sharp.concurrency(1);
const noise = { type: 'gaussian', mean: 128, sigma: 40 };
const picture = await sharp({ create: { width: 1000, height: 1000, channels: 3, background: '#a3c', noise } })
  .png()
  .toBuffer();
const since = (begun) => (performance.now() - begun) / 1000;
const span = (seconds) => (seconds < 1.5 ? 'within 1.5 s' : seconds > 3 ? 'after more than 3 s' : 'in between');

if (isMainThread) {
  for (const format of ['jpeg', 'webp', 'png', 'avif']) {
    const begun = performance.now();
    const end = await sharp(picture)
      .timeout({ seconds: 1 })
      .toFormat(format)
      .toBuffer()
      .then(
        () => 'a picture',
        (error) => error.message,
      );
    console.log(`${format}, timeout of 1 s: ${end} ${span(since(begun))}`);
  }
  const worker = new Worker(new URL(import.meta.url));
  await new Promise((resolve) => worker.once('message', resolve));
  await new Promise((resolve) => setTimeout(resolve, 500));
  const begun = performance.now();
  await worker.terminate();
  console.log(`terminate() of a thread that encodes AVIF: done ${span(since(begun))}`);
} else {
  parentPort.postMessage('begins');
  await sharp(picture).avif().toBuffer();
}
JS
node look.mjs >seen
cat >expected <<'TEXT'
jpeg, timeout of 1 s: a picture within 1.5 s
webp, timeout of 1 s: a picture within 1.5 s
png, timeout of 1 s: a picture within 1.5 s
avif, timeout of 1 s: a picture after more than 3 s
terminate() of a thread that encodes AVIF: done after more than 3 s
TEXT
cat seen
diff expected seen
