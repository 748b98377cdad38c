/**
 * Which binary content is, from its first octets: `file-type` decides by signatures, and what it says must have the structure that the
 * format has. Its signatures of two and three octets also fit other content: "BM" a bitmap, 78 01 (each zlib stream) a disk image of Apple.
 *
 * `file-type` gets the first octets alone, and says nothing where a format needs later ones: TIFF, as libtiff writes it, has its directory
 * at the end. The signatures of such formats are looked for after it.
 */
import { registeredType } from './media-type-names.ts';

export type FoundBinary = {
  /** `application/octet-stream` if nothing is known. */
  readonly type: string;
  /** A type that only a short signature suggests. It counts if the stated type or the extension of the name agrees. */
  readonly perhaps?: { readonly type: string; readonly extension: string } | undefined;
};

/** Types that a content must have by its octets, or it has them not. Those that only short signatures tell are no part of it. */
export async function loadKnownTypes(): Promise<ReadonlySet<string>> {
  const { supportedMimeTypes } = await import('file-type');
  const types = [...supportedMimeTypes].map(registeredType).filter((type) => !unproven.has(type));
  return new Set([...types, 'image/svg+xml']);
}

export async function findBinaryType(head: Uint8Array, bytes: number): Promise<FoundBinary> {
  const view = new Octets(head, bytes);
  // Before file-type, which unpacks up to 16 MiB to look for an archive inside, to no other answer.
  if (view.has(0, '1f8b08')) return { type: 'application/gzip' };
  const found = await askFileType(head);
  const type = found === undefined ? findCut(view) : registeredType(found.mime);
  if (type === undefined) return { type: findMpegAudio(view) ?? 'application/octet-stream' };
  if (type === 'image/heif') return { type: heifType(view) };
  const isProven = !unproven.has(type) && (structures[type]?.(view) ?? true);
  if (isProven) return { type };
  const perhaps = found === undefined ? undefined : { type, extension: found.ext };
  return { type: findMpegAudio(view) ?? 'application/octet-stream', perhaps };
}

async function askFileType(
  head: Uint8Array,
): Promise<{ readonly mime: string; readonly ext: string } | undefined> {
  const { fileTypeFromBuffer } = await import('file-type');
  try {
    return await fileTypeFromBuffer(head);
  } catch {
    // Malformed content of a format that it reads: then the signatures below decide.
    return undefined;
  }
}

/** The first octets of a content. Outside of them every octet is -1. */
class Octets {
  readonly #head: Uint8Array;
  /** Length of the whole content. */
  readonly bytes: number;

  constructor(head: Uint8Array, bytes: number) {
    this.#head = head;
    this.bytes = bytes;
  }

  get isWhole(): boolean {
    return this.#head.length >= this.bytes;
  }

  get length(): number {
    return this.#head.length;
  }

  at(index: number): number {
    return this.#head[index] ?? -1;
  }

  /** Compares with octets in hexadecimal digits. */
  has(from: number, hex: string): boolean {
    return Buffer.from(this.#head.buffer, this.#head.byteOffset, this.#head.length)
      .subarray(from, from + hex.length / 2)
      .equals(Buffer.from(hex, 'hex'));
  }

  text(from: number, length: number): string {
    return Buffer.from(this.#head.subarray(from, from + length)).toString('latin1');
  }

  uint16le(from: number): number {
    return this.at(from) + this.at(from + 1) * 0x100;
  }

  uint16be(from: number): number {
    return this.at(from) * 0x100 + this.at(from + 1);
  }

  uint32le(from: number): number {
    return this.uint16le(from) + this.uint16le(from + 2) * 0x1_0000;
  }
}

/** Signatures of two octets that nothing after them proves. */
const unproven: ReadonlySet<string> = new Set([
  'application/x-apple-diskimage',
  'application/x-compress',
  'application/x-arj',
  'application/x-cpio',
  'audio/ac3',
]);

const bitmapHeaders: ReadonlySet<number> = new Set([12, 16, 40, 52, 56, 64, 108, 124]);
const bzip2Block = /^BZh[1-9](?:1AY&SY|\u0017rE8P\u0090)/;
const gifVersion = /^GIF8[79]a/;
const executables = /^(?:PE\0\0|NE|LE|LX)/;
const aiffForms = /^AIF[FC]/;

/** For types with a short signature in `file-type`: true if the content has the structure of the format. */
const structures: Readonly<Record<string, (view: Octets) => boolean>> = {
  'image/bmp': (view) => bitmapHeaders.has(view.uint32le(14)),
  'image/gif': (view) => gifVersion.test(view.text(0, 6)),
  'image/vnd.microsoft.icon': isIcon,
  'application/x-bzip2': (view) => bzip2Block.test(view.text(0, 10)),
  'application/vnd.microsoft.portable-executable': isExecutable,
  'audio/aiff': (view) => aiffForms.test(view.text(8, 4)),
  'audio/mpeg': (view) => view.text(0, 3) === 'ID3' || findMpegAudio(view) === 'audio/mpeg',
  'audio/aac': (view) => findMpegAudio(view) === 'audio/aac',
  'font/ttf': isTrueType,
  'video/mp2t': isTransportStream,
  'image/jxl': (view) => view.has(0, '0000000c4a584c20'),
};

function isIcon(view: Octets): boolean {
  const count = view.uint16le(4);
  const offset = view.uint32le(18);
  return count > 0 && count <= 1024 && offset >= 6 + 16 * count && offset < view.bytes;
}

/** The header of MS-DOS names the place of the real one. */
function isExecutable(view: Octets): boolean {
  const offset = view.uint32le(60);
  return offset < view.length ? executables.test(view.text(offset, 4)) : offset < view.bytes;
}

/** OpenType, "Table Directory": `searchRange` follows from the number of tables. */
function isTrueType(view: Octets): boolean {
  const tables = view.uint16be(4);
  return tables > 0 && view.uint16be(6) === 16 * 2 ** Math.floor(Math.log2(tables));
}

/** Packets of 188 octets, or of 192, begin with 47. */
function isTransportStream(view: Octets): boolean {
  const [first, size] = view.at(0) === 0x47 ? [0, 188] : [4, 192];
  return [1, 2, 3].every((n) => view.at(first + n * size) === 0x47 || first + n * size >= view.bytes);
}

/** The brands of a file of the family of HEIF (ISO/IEC 23008-12) say what is inside; the first may only say `mif1`. */
function heifType(view: Octets): string {
  const brands = view.text(16, Math.min(view.at(3), 256) - 16);
  if (brands.includes('avif')) return 'image/avif';
  return brands.includes('heic') || brands.includes('heix') ? 'image/heic' : 'image/heif';
}

const cutSignatures: readonly (readonly [hex: string, type: string])[] = [
  ['89504e470d0a1a0a', 'image/png'],
  ['49492a00', 'image/tiff'],
  ['4d4d002a', 'image/tiff'],
  ['4f676753', 'application/ogg'],
  ['3026b2758e66cf11', 'application/vnd.ms-asf'],
];
/** Where browsers and readers of PDF still find its header. */
const pdfHeaderWithin = 1024;
const ebmlHeaderWithin = 64;

function findCut(view: Octets): string | undefined {
  const known = cutSignatures.find(([hex]) => view.has(0, hex))?.[1];
  if (known !== undefined) return known;
  if (view.has(0, '1a45dfa3')) {
    return view.text(0, ebmlHeaderWithin).includes('webm') ? 'video/webm' : 'video/matroska';
  }
  return view.text(0, pdfHeaderWithin).includes('%PDF-') ? 'application/pdf' : undefined;
}

/** Frames may begin after what is none, such as zeros or a cut frame. */
const frameWithin = 4096;
const framesMin = 3;

/** Looks for three frames of MPEG audio or AAC (ADTS), each where the one before it ends; fewer at the very start, if the content ends with them. */
function findMpegAudio(view: Octets): 'audio/mpeg' | 'audio/aac' | undefined {
  for (let start = 0; start < Math.min(frameWithin, view.length); start += 1) {
    if (view.at(start) !== 0xff) continue;
    const found = frames.find(([, lengthOf]) => areFrames(view, start, lengthOf));
    if (found !== undefined) return found[0];
  }
  return undefined;
}

function areFrames(view: Octets, start: number, lengthOf: (view: Octets, at: number) => number): boolean {
  let at = start;
  for (let count = 0; count < framesMin; count += 1) {
    const length = lengthOf(view, at);
    if (length === 0) return false;
    at += length;
    if (at >= view.length && count < framesMin - 1) return start === 0 && at <= view.bytes;
  }
  return true;
}

const frames = [
  ['audio/mpeg', mpegFrameLength],
  ['audio/aac', adtsFrameLength],
] as const;

/** Kilobits a second of versions 1 and 2, by layer (ISO/IEC 11172-3 and 13818-3, "bitrate_index"); 0 for the free format and the forbidden one. */
const bitrates: Readonly<Record<string, readonly number[]>> = {
  '1/1': [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448, 0],
  '1/2': [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0],
  '1/3': [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
  '2/1': [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256, 0],
  '2/2': [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
};
const sampleRates = [44_100, 48_000, 32_000, 0] as const;

/** Octets of the frame at an index; 0 if there is none. */
function mpegFrameLength(view: Octets, at: number): number {
  const [second, third] = [view.at(at + 1), view.at(at + 2)];
  if (view.at(at) !== 0xff || second < 0xe0 || third < 0) return 0;
  // 0: MPEG 2.5, 1: reserved, 2: MPEG 2, 3: MPEG 1.
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  const kind = `${version === 3 ? 1 : 2}/${version === 3 ? layer : Math.min(layer, 2)}`;
  const bits = 1000 * (bitrates[kind]?.[third >> 4] ?? 0);
  const rate = (sampleRates[(third >> 2) & 3] ?? 0) / (version === 3 ? 1 : version === 2 ? 2 : 4);
  if (version === 1 || layer === 4 || bits === 0 || rate === 0) return 0;
  const padding = (third >> 1) & 1;
  if (layer === 1) return (Math.floor((12 * bits) / rate) + padding) * 4;
  const octetsPerSample = layer === 3 && version !== 3 ? 72 : 144;
  return Math.floor((octetsPerSample * bits) / rate) + padding;
}

/** ISO/IEC 13818-7, "adts_variable_header": 13 bits after the sync word and 18 others. */
function adtsFrameLength(view: Octets, at: number): number {
  if (view.at(at) !== 0xff || (view.at(at + 1) & 0xf6) !== 0xf0 || view.at(at + 5) < 0) return 0;
  const length = ((view.at(at + 3) & 3) << 11) | (view.at(at + 4) << 3) | (view.at(at + 5) >> 5);
  return length >= 7 ? length : 0;
}
