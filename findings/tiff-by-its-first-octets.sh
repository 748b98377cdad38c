#!/usr/bin/env bash
# The type of a TIFF by its first 4,100 octets, as the README of file-type reads a file and as its stream does.
#
# Guess: the first 4,100 octets tell the type of a picture, of TIFF too, whose signature is its first four octets.
# Seen (file-type 22.3.0 and 21.3.4, pictures by sharp 0.35.5): JPEG, PNG, WebP, GIF and AVIF are found. A TIFF is `undefined` by the head and
# by `fileTypeStream`, because libtiff writes the directory behind the pixels and file-type reads it to tell raw photos from TIFF. Of the
# whole content, or by `fileTypeFromStream`, it is image/tiff. A server that refuses what is `undefined` refuses each TIFF that is longer.
#
# Needs node 22 or newer, npm and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund file-type@22.3.0 file-type-21@npm:file-type@21.3.4 sharp@0.35.5
cat >look.mjs <<'JS'
import * as current from 'file-type';
import * as before from 'file-type-21';
import sharp from 'sharp';

const noise = { type: 'gaussian', mean: 128, sigma: 40 };
const picture = sharp({ create: { width: 800, height: 600, channels: 3, background: '#a3c', noise } });
for (const format of ['jpeg', 'png', 'webp', 'gif', 'avif', 'tiff']) {
  const octets = await picture.clone().toFormat(format).toBuffer();
  for (const [version, library] of [[22, current], [21, before]]) {
    const stream = await library.fileTypeStream(new Blob([octets]).stream());
    const found = [
      await library.fileTypeFromBuffer(octets),
      await library.fileTypeFromBuffer(octets.subarray(0, 4100)),
      stream.fileType,
    ].map((type) => type?.mime);
    console.log(`${format}, file-type ${version}: whole ${found[0]}, first 4,100 octets ${found[1]}, stream ${found[2]}`);
    await stream.cancel();
  }
}
JS
node look.mjs >seen
cat seen
cat >expected <<'TEXT'
jpeg, file-type 22: whole image/jpeg, first 4,100 octets image/jpeg, stream image/jpeg
jpeg, file-type 21: whole image/jpeg, first 4,100 octets image/jpeg, stream image/jpeg
png, file-type 22: whole image/png, first 4,100 octets image/png, stream image/png
png, file-type 21: whole image/png, first 4,100 octets image/png, stream image/png
webp, file-type 22: whole image/webp, first 4,100 octets image/webp, stream image/webp
webp, file-type 21: whole image/webp, first 4,100 octets image/webp, stream image/webp
gif, file-type 22: whole image/gif, first 4,100 octets image/gif, stream image/gif
gif, file-type 21: whole image/gif, first 4,100 octets image/gif, stream image/gif
avif, file-type 22: whole image/avif, first 4,100 octets image/avif, stream image/avif
avif, file-type 21: whole image/avif, first 4,100 octets image/avif, stream image/avif
tiff, file-type 22: whole image/tiff, first 4,100 octets undefined, stream undefined
tiff, file-type 21: whole image/tiff, first 4,100 octets undefined, stream undefined
TEXT
diff expected seen
