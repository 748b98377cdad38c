/**
 * Uploads in chunks, to an upload resource (tus 1.0): `fetch` has no progress over HTTP/1.1, and after a cut the upload goes on from the octets
 * that the server has, also after a reload where its place is remembered. A chunk has succeeded when the answer says the offset after it. The
 * first long file loads this code.
 */
import { ComityError } from './error.ts';
import { type Answer, backoff, type CallOptions, type Send, wait, waitAfter } from './send.ts';
import { described, pick, type UploadOptions, unknownAnswer } from './upload.ts';

/** 256 KiB to 8 MiB. A chunk that took less than a second makes the next one longer. */
const chunkBytesMin = 262_144;
const chunkBytesMax = 8_388_608;
const chunkMs = 1_000;
/** Failures one after the other without an octet of progress. */
const failuresMax = 8;
const tus = { 'Tus-Resumable': '1.0.0' };

type Purpose<T> = {
  /** The path of the field, or of uploads for documents to come. */
  readonly address: string;
  /** The field, by whose limits the file is refused at once. */
  readonly target?: object;
  /** Uses the finished upload, which is then forgotten. */
  readonly take: (uploadId: string) => T | Promise<T>;
};

/** Sends a file in chunks. @returns what `take` returns */
export async function sendChunks<T>(
  send: Send,
  file: Blob,
  options: UploadOptions,
  { address, target = {}, take }: Purpose<T>,
): Promise<T> {
  const { name = '', type = '' } = described(file, options);
  const { lastModified } = file as { readonly lastModified?: number };
  // Without its time, other content of the same length would be taken for the same file.
  const memory = memoryOf(
    lastModified === undefined ? undefined : options.remember,
    JSON.stringify([address, name, type, file.size, lastModified]),
  );
  const begun = await resume(send, await memory.find(), file.size, options);
  const metadata = { filename: name, filetype: type, ...target };
  const location = begun?.location ?? (await begin(send, metadata, file.size, pick(options)));
  await memory.keep(location);
  await sendRest(send, file, options, { location, offset: begun?.offset ?? 0 });
  const taken = await take(location.slice(location.lastIndexOf('/') + 1));
  await memory.keep();
  return taken;
}

type Reached = { readonly location: string; readonly offset: number };

/** @returns undefined if the upload is gone, or a document has taken it */
async function resume(
  send: Send,
  location: string | undefined,
  size: number,
  options: CallOptions,
): Promise<Reached | undefined> {
  if (location === undefined) return undefined;
  const asked = { ...pick(options), headers: tus, accepts: [403, 404, 410] };
  const answer = await send('HEAD', location, asked);
  const isSame = answer.headers.get('Upload-Length') === String(size);
  return answer.refusal === undefined && isSame ? { location, offset: offsetIn(answer) } : undefined;
}

async function sendRest(
  send: Send,
  file: Blob,
  { onProgress, ...options }: UploadOptions,
  { location, offset: from }: Reached,
): Promise<void> {
  const { size } = file;
  const sent = pick(options);
  let chunkBytes = chunkBytesMin;
  let isCut = false;
  let failures = 0;
  for (let offset = from; ; ) {
    onProgress?.(offset, size);
    if (offset === size) return;
    let reached = offset;
    try {
      const startedAt = Date.now();
      reached = offsetIn(
        isCut
          ? await send('HEAD', location, { ...sent, headers: tus })
          : await send('PATCH', location, {
              ...{ ...sent, once: true, accepts: [409], body: file.slice(offset, offset + chunkBytes) },
              headers: {
                ...{ ...tus, 'Content-Type': 'application/offset+octet-stream' },
                'Upload-Offset': String(offset),
              },
            }),
      );
      chunkBytes = Date.now() - startedAt < chunkMs ? chunkBytes * 2 : chunkBytes / 2;
      chunkBytes = Math.min(chunkBytesMax, Math.max(chunkBytesMin, chunkBytes));
      isCut = false;
      failures = reached > offset ? 0 : failures + 1;
      if (failures > failuresMax) throw unknownAnswer('makes no progress');
    } catch (error) {
      failures += 1;
      const waitMs = waitOf(error, failures);
      if (waitMs === undefined || failures > failuresMax) throw error;
      isCut = true;
      chunkBytes = chunkBytesMin;
      await wait(waitMs, sent.signal);
    }
    offset = reached;
  }
}

/** Makes an upload resource. @returns its path */
async function begin(send: Send, metadata: object, bytes: number, sent: CallOptions): Promise<string> {
  const pairs = Object.entries(metadata).filter(([, value]) => value !== '');
  const { status, headers } = await send('POST', '/uploads', {
    ...sent,
    headers: {
      ...{ ...tus, 'Upload-Length': String(bytes) },
      'Upload-Metadata': pairs.map(([name, value]) => `${name} ${base64(value)}`).join(','),
    },
  });
  const location = headers.get('Location');
  if (status !== 201 || location === null) throw unknownAnswer('made no upload');
  return location;
}

/** @returns undefined if the upload fails with the error */
function waitOf(error: unknown, failures: number): number | undefined {
  if (!(error instanceof ComityError)) return undefined;
  const { code, status } = error;
  // No answer, or one that a browser made of the end of a connection.
  const isLost = code === 'network' || code === 'timeout' || (code === 'answer_unknown' && status < 400);
  return isLost ? backoff(failures) : waitAfter(error, failures);
}

function offsetIn({ headers, refusal }: Answer): number {
  const field = headers.get('Upload-Offset');
  if (field === null) throw refusal ?? unknownAnswer('has no Upload-Offset');
  return Number(field);
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

const memoryName = 'comity.uploads';
/** The newest ones. The server keeps an unfinished upload for a day. */
const rememberedMax = 50;

type Remembered = readonly (readonly [key: string, location: string])[];

/** The place of one upload in a storage, which has a list of them. A storage that fails costs the resumption, and not the upload. */
function memoryOf(storage: UploadOptions['remember'], key: string) {
  const list = async (): Promise<Remembered> => {
    const known: unknown = JSON.parse((await storage?.getItem(memoryName)) ?? '[]');
    return Array.isArray(known) ? known : [];
  };
  return {
    find: async () => (await list().catch(() => [])).find(([each]) => each === key)?.[1],
    /** @param location undefined: forgets it */
    async keep(location?: string): Promise<void> {
      const others = (await list().catch(() => [])).filter(([each]) => each !== key);
      const kept = location === undefined ? others : [...others, [key, location]];
      try {
        await storage?.setItem(memoryName, JSON.stringify(kept.slice(-rememberedMax)));
      } catch {
        // It is full or forbidden.
      }
    },
  };
}
