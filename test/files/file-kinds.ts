/** Small files of many kinds: made by the programs of their formats where one is here, otherwise by their specifications. */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { crc32, gzipSync, zstdCompressSync } from 'node:zlib';
import sharp from 'sharp';

export type FileKind = {
  readonly title: string;
  readonly content: Uint8Array;
  readonly name: string;
  /** The type where the client states none. */
  readonly type: string;
  readonly charset?: string;
};

const hex = (digits: string, rest = 64): Buffer =>
  Buffer.concat([Buffer.from(digits.replaceAll(' ', ''), 'hex'), Buffer.alloc(rest)]);
const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');

/** A ZIP archive with its entries stored in this order. */
export function zip(entries: Readonly<Record<string, string>>): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(entries)) {
    const content = Buffer.from(text);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(content.length, 14);
    common.writeUInt32LE(content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([utf8('PK\u0003\u0004'), common, utf8(name), content]);
    locals.push(local);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    central.push(Buffer.concat([utf8('PK\u0001\u0002'), Buffer.from([20, 0]), common, place, utf8(name)]));
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(central.length, 4);
  end.writeUInt16LE(central.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, utf8('PK\u0005\u0006'), end]);
}

function office(folder: string, type: string): Buffer {
  const types = `<Types><Override PartName="/${folder}/x.xml" ContentType="application/vnd.openxmlformats-officedocument.${type}.main+xml"/></Types>`;
  return zip({ '[Content_Types].xml': types, '_rels/.rels': '<a/>', [`${folder}/x.xml`]: '<a/>' });
}

function sqlite(): Buffer {
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE kept (id INTEGER)');
  const octets = database.serialize();
  database.close();
  return Buffer.from(octets);
}

function tar(): Buffer {
  const header = Buffer.alloc(1024);
  header.write('a.txt');
  header.write('ustar\u000000', 257);
  return header;
}

function bitmap(): Buffer {
  const content = Buffer.alloc(58);
  content.write('BM');
  content.writeUInt32LE(58, 2);
  content.writeUInt32LE(54, 10);
  content.writeUInt32LE(40, 14);
  return content;
}

function executable(): Buffer {
  const content = Buffer.alloc(256);
  content.write('MZ');
  content.writeUInt32LE(128, 60);
  content.write('PE\0\0', 128);
  return content;
}

const box = (brand: string, ...compatible: readonly string[]): Buffer => {
  const brands = utf8(['ftyp', brand, '\0\0\0\0', ...compatible].join(''));
  return Buffer.concat([Buffer.from([0, 0, 0, brands.length + 4]), brands, Buffer.alloc(64)]);
};

const ogg = (codec: string): Buffer =>
  Buffer.concat([utf8('OggS'), Buffer.alloc(24), Buffer.from(codec, 'latin1'), Buffer.alloc(64)]);

const ebml = (type: string): Buffer =>
  Buffer.concat([
    Buffer.from([0x1a, 0x45, 0xdf, 0xa3, 0x80 + type.length + 3, 0x42, 0x82, 0x80 + type.length]),
    utf8(type),
    Buffer.alloc(64),
  ]);

const frame = (header: string, length: number): Buffer => Buffer.concat([Buffer.from(header, 'hex')], length);
const mp3 = Buffer.concat([1, 2, 3].map(() => frame('fffb9064', 417)));
const aac = Buffer.concat([1, 2, 3].map(() => frame('fff15080060000', 48)));

const image = (): ReturnType<typeof sharp> =>
  sharp({
    create: {
      width: 320,
      height: 200,
      channels: 3,
      background: '#a3c',
      noise: { type: 'gaussian', mean: 128, sigma: 40 },
    },
  });
const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><rect/></svg>';
const packageFile = (path: string): Buffer =>
  readFileSync(new URL(`../../node_modules/${path}`, import.meta.url));

type Add = (
  type: string,
  name: string,
  content: Uint8Array | string,
  more?: Pick<Partial<FileKind>, 'title' | 'charset'>,
) => void;

export async function fileKinds(): Promise<readonly FileKind[]> {
  const kinds: FileKind[] = [];
  const add: Add = (type, name, content, more = {}) => {
    kinds.push({
      title: name,
      content: typeof content === 'string' ? utf8(content) : content,
      name,
      type,
      ...more,
    });
  };
  await addImages(add);
  addDocuments(add);
  addArchives(add);
  addMedia(add);
  addPrograms(add);
  addTexts(add);
  addMarkup(add);
  addUnknown(add);
  return kinds;
}

async function addImages(add: Add): Promise<void> {
  add('image/jpeg', 'photo.jpg', await image().jpeg().toBuffer());
  add('image/png', 'photo.png', await image().png().toBuffer());
  add('image/webp', 'photo.webp', await image().webp().toBuffer());
  add('image/gif', 'photo.gif', await image().gif().toBuffer());
  add('image/avif', 'photo.avif', await image().avif().toBuffer());
  add('image/tiff', 'photo.tif', await image().tiff().toBuffer(), {
    title: 'a TIFF with its directory at the end',
  });
  add('image/tiff', 'photo.tiff', await image().tiff({ bigtiff: true }).toBuffer(), { title: 'a BigTIFF' });
  add('image/x-nikon-nef', 'photo.nef', await image().tiff().toBuffer(), {
    title: 'a TIFF by the name of a raw photo',
  });
  add('image/bmp', 'a.bmp', bitmap());
  add('image/vnd.microsoft.icon', 'favicon.ico', packageFile('pino/favicon.ico'));
  add('image/heic', 'IMG_1.HEIC', box('heic', 'mif1', 'heic'));
  add('image/heic', 'mif1.heic', box('mif1', 'mif1', 'heic'), { title: 'HEIC of the major brand mif1' });
  add('image/avif', 'mif1.avif', box('mif1', 'mif1', 'avif'), { title: 'AVIF of the major brand mif1' });
  add('image/vnd.adobe.photoshop', 'a.psd', hex('38425053 0001'));
  add('image/jxl', 'a.jxl', hex('0000000c 4a584c20 0d0a870a'));
  add('image/jxl', 'bare.jxl', hex('ff0a fa7f'), { title: 'a bare JPEG XL by its name' });
  add('image/jp2', 'a.jp2', hex('0000000c 6a502020 0d0a870a 00000014 66747970 6a703220'));
  add('image/svg+xml', 'a.svg', svg);
  add(
    'image/svg+xml',
    'b.svg',
    `\ufeff<?xml version="1.0"?>\n<!-- Made > by --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd" [\n<!ENTITY a "]>"> <!-- don't -->]>\n${svg}`,
    { title: 'an SVG with all that may stand before it' },
  );
  add('image/svg+xml', 'c.svg', Buffer.from(`\ufeff${svg}`, 'utf16le'), { title: 'an SVG in UTF-16' });
}

function addDocuments(add: Add): void {
  add('application/pdf', 'ascii.pdf', '%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\n%%EOF\n', {
    title: 'a PDF of ASCII',
  });
  add('application/pdf', 'a.pdf', Buffer.concat([utf8('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n'), Buffer.alloc(99)]));
  add('application/pdf', 'late.pdf', Buffer.concat([Buffer.alloc(100), utf8('%PDF-1.7\n')]), {
    title: 'a PDF after zeros',
  });
  add('application/postscript', 'a.ps', '%!PS-Adobe-3.0\n%%Pages: 1\n');
  add('application/rtf', 'a.rtf', '{\\rtf1\\ansi Hello}');
  const wordprocessing = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  add(wordprocessing, 'a.docx', office('word', 'wordprocessingml.document'));
  const late = { 'word/document.xml': 'a'.repeat(99_999), '[Content_Types].xml': '<Types/>' };
  add(wordprocessing, 'late.docx', zip(late), { title: 'a document whose types come last' });
  add(
    'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    'a.xlsx',
    office('xl', 'spreadsheetml.sheet'),
  );
  add(
    'application/vnd.openxmlformats-officedocument.presentationml.presentation',
    'a.pptx',
    office('ppt', 'presentationml.presentation'),
  );
  add(
    'application/vnd.oasis.opendocument.text',
    'a.odt',
    zip({ mimetype: 'application/vnd.oasis.opendocument.text', 'content.xml': '<a/>' }),
  );
  add(
    'application/vnd.oasis.opendocument.spreadsheet',
    'a.ods',
    zip({ mimetype: 'application/vnd.oasis.opendocument.spreadsheet' }),
  );
  add('application/epub+zip', 'a.epub', zip({ mimetype: 'application/epub+zip' }));
  add('application/java-archive', 'a.jar', zip({ 'META-INF/MANIFEST.MF': 'Manifest-Version: 1.0' }));
  add(
    'application/vnd.android.package-archive',
    'a.apk',
    zip({ 'META-INF/MANIFEST.MF': 'Manifest-Version: 1.0' }),
  );
  add('application/vnd.google-earth.kmz', 'a.kmz', zip({ 'doc.kml': '<kml/>' }));
  add('application/msword', 'a.doc', hex('d0cf11e0a1b11ae1', 512));
  add('application/vnd.ms-excel', 'a.xls', hex('d0cf11e0a1b11ae1', 512));
  add('application/x-cfb', 'a.xyz', hex('d0cf11e0a1b11ae1', 512), {
    title: 'a compound file by another name',
  });
}

function addArchives(add: Add): void {
  add('application/zip', 'a.zip', packageFile('thread-stream/test/ts-commonjs-default-export.zip'));
  add('application/gzip', 'a.tgz', gzipSync(tar()));
  add('application/zstd', 'a.zst', zstdCompressSync(tar()));
  add('application/x-tar', 'a.tar', tar());
  add('application/x-7z-compressed', 'a.7z', hex('377abcaf271c 0004'));
  add('application/vnd.rar', 'a.rar', hex('526172211a0700'));
  add('application/x-bzip2', 'a.bz2', hex('425a6839 314159265359'));
  add('application/x-xz', 'a.xz', hex('fd377a585a00'));
}

function addMedia(add: Add): void {
  add('audio/mpeg', 'a.mp3', mp3);
  add(
    'audio/mpeg',
    'id3.mp3',
    Buffer.concat([utf8('ID3'), Buffer.from([3, 0, 0, 0, 0x7f, 0x7f, 0x7f]), Buffer.alloc(99)]),
    { title: 'a sound with a picture before it' },
  );
  add('audio/mpeg', 'late.mp3', Buffer.concat([Buffer.alloc(1000), mp3]), { title: 'a sound after zeros' });
  add('audio/aac', 'a.aac', aac);
  add('audio/wav', 'a.wav', hex('52494646 24000000 57415645 666d7420'));
  add('audio/flac', 'a.flac', hex('664c6143 00000022'));
  add('audio/ogg', 'a.ogg', ogg('\x01vorbis'));
  add('audio/ogg', 'a.opus', ogg('OpusHead'));
  add('audio/aiff', 'a.aiff', Buffer.concat([utf8('FORM\0\0\0\x2eAIFFCOMM'), Buffer.alloc(64)]));
  add('audio/midi', 'a.mid', hex('4d546864 00000006'));
  add('audio/mp4', 'a.m4a', box('M4A '));
  add('audio/mp4', 'b.m4a', box('isom'), { title: 'a sound whose brand is that of films' });
  add('video/mp4', 'a.mp4', box('isom'));
  add('video/quicktime', 'a.mov', box('qt  '));
  add('video/webm', 'a.webm', ebml('webm'));
  add('video/matroska', 'a.mkv', ebml('matroska'));
  add('video/vnd.avi', 'a.avi', hex('52494646 24000000 41564920'));
  add('video/mp2t', 'a.ts', Buffer.concat([1, 2, 3, 4].map(() => frame('47400010', 188))), {
    title: 'a transport stream',
  });
}

function addPrograms(add: Add): void {
  add('application/vnd.microsoft.portable-executable', 'a.exe', executable());
  add('application/x-elf', 'a.out', packageFile('@esbuild/linux-x64/bin/esbuild').subarray(0, 100_000));
  add('application/wasm', 'a.wasm', packageFile('playwright-core/lib/webp_codec.wasm'));
  add('font/ttf', 'a.ttf', packageFile('playwright-core/lib/vite/traceViewer/codicon.DCmgc-ay.ttf'));
  add('font/woff2', 'a.woff2', hex('774f4632 00010000'));
  add('application/vnd.sqlite3', 'a.db', sqlite());
  add('application/geopackage+sqlite3', 'a.gpkg', sqlite());
}

function addTexts(add: Add): void {
  add('text/plain', 'a.txt', 'Grüße\n', { charset: 'utf-8' });
  add('text/plain', 'notes', 'Grüße\n', { title: 'a text without an extension', charset: 'utf-8' });
  add('text/plain', 'latin1.txt', Buffer.from('Grüße\n', 'latin1'), { title: 'a text in Latin-1' });
  add('text/plain', 'empty.txt', '', { title: 'an empty text', charset: 'utf-8' });
  add('text/csv', 'a.csv', 'name;price\n', { charset: 'utf-8' });
  add('text/csv', 'excel.csv', Buffer.from('\ufeffname\tprice\r\n', 'utf16le'), {
    title: 'UTF-16 as Excel writes it',
    charset: 'utf-16',
  });
  add('text/csv', 'be.csv', Buffer.from('\ufeffname\tprice\r\n', 'utf16le').swap16(), {
    title: 'UTF-16 of the other order',
    charset: 'utf-16',
  });
  add('text/csv', 'bare.csv', Buffer.from('name\tprice\r\nZoë\t1\r\n', 'utf16le'), {
    title: 'UTF-16 without its mark',
    charset: 'utf-16',
  });
  add('text/csv', 'bmw.csv', 'BMW;3er;2019\n', { title: 'a table about BMW', charset: 'utf-8' });
  add('text/csv', 'mainz.csv', 'MZ;Mainz\n', { title: 'a table that begins with MZ', charset: 'utf-8' });
  add('text/plain', 'id3.txt', 'ID3 decision trees\n', { title: 'a text about ID3', charset: 'utf-8' });
  add('text/plain', 'solid.txt', 'solid advice\n', {
    title: 'a text that begins with solid',
    charset: 'utf-8',
  });
  add('text/markdown', 'README.md', '<p align="center">\n\n# Title\n', {
    title: 'Markdown that begins with HTML',
    charset: 'utf-8',
  });
  add('text/calendar', 'a.ics', 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\n', { charset: 'utf-8' });
  add('text/vcard', 'a.vcf', 'BEGIN:VCARD\r\nVERSION:4.0\r\n', { charset: 'utf-8' });
  add('text/vtt', 'a.vtt', 'WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n', { charset: 'utf-8' });
}

function addMarkup(add: Add): void {
  add('application/json', 'a.json', '{"a": [1]}');
  add('application/json', 'long.json', `[{"a": "${'x'.repeat(70_000)}"}]`, {
    title: 'a JSON text longer than what is read',
  });
  add('application/geo+json', 'a.geojson', '{"type":"FeatureCollection","features":[]}');
  add('text/html', 'a.html', '<!doctype html><title>x</title>');
  add('text/html', 'b.html', ' \n<!-- a --><HTML lang=en>', { title: 'HTML after a comment' });
  add('text/html', 'page', '<script>1</script>', { title: 'HTML without a name for it' });
  add(
    'application/xhtml+xml',
    'a.xhtml',
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>',
  );
  add('application/xml', 'a.xml', '<?xml version="1.0"?><order/>');
  add('application/gpx+xml', 'a.gpx', '<gpx xmlns="http://www.topografix.com/GPX/1/1"/>');
}

function addUnknown(add: Add): void {
  add('application/octet-stream', 'zlib.bin', hex('7801 636060'), {
    title: 'a zlib stream, which is no disk image',
  });
  add('application/octet-stream', 'bm.bin', hex('424d ffff'), { title: 'octets that begin with BM' });
  add('application/octet-stream', 'mz.bin', Buffer.concat([utf8('MZ'), Buffer.alloc(32)]), {
    title: 'octets that begin with MZ',
  });
  add('application/octet-stream', 'ico.bin', hex('00000100 ffff'), { title: 'octets that begin as an icon' });
  add('application/octet-stream', 'noise.bin', hex('fffb0000 ffe0'), { title: 'octets that begin as sound' });
  add('application/octet-stream', 'short.bin', Buffer.from([0]), { title: 'one octet' });
}
