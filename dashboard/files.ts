/** Files of documents: how they are uploaded, by the client of the package, shown by links that need no credential, and removed. */
import { type ApiFile, ComityError, createClient } from '../src/client/index.ts';
import { base, belowPrefix, type Listed } from './description.ts';
import { isObject, key, type Problem, prefix, problemOf, send } from './send.ts';

export function isFile(value: unknown): value is ApiFile {
  return (
    isObject(value) &&
    ['id', 'name', 'type', 'digest', 'url'].every((name) => typeof value[name] === 'string')
  );
}

/** Collections whose members may all be files: which are is read from the API document. */
type AnyFiles = {
  readonly collections: {
    readonly [name: string]: {
      readonly document: { readonly [field: string]: ApiFile };
      readonly create: object;
      readonly patch: object;
    };
  };
};

type Upload = {
  readonly list: Listed;
  readonly id: string;
  readonly field: string;
  /** The tag of the file that is replaced. */
  readonly ifMatch: string | null;
  readonly signal: AbortSignal;
  readonly onProgress: (sentBytes: number) => void;
};

/** A client with the credential of now. */
function clientNow() {
  const credential = key.value === null ? { cookie: true } : { key: key.value };
  return createClient<AnyFiles>({ baseUrl: prefix + base.value, ...credential });
}

/** @returns the problem, if it was refused */
export async function uploadFile(
  file: File,
  { list, id, field, ifMatch, signal, onProgress }: Upload,
): Promise<Problem | undefined> {
  try {
    const condition = ifMatch === null ? {} : { ifMatch };
    await clientNow()
      .collection(list.name)
      .upload(id, field, file, { ...condition, signal, onProgress });
    return undefined;
  } catch (error) {
    if (signal.aborted) return undefined;
    if (!(error instanceof ComityError)) throw error;
    const { status, message, code, errors: faults } = error;
    return { status, message, code, faults, trace: undefined, request: undefined };
  }
}

/** Removes a file. @returns the problem, if it was refused */
export async function removeFile(file: ApiFile): Promise<Problem | undefined> {
  const tag = await tagOf(file);
  return problemOf(
    await send('DELETE', belowPrefix(file.url), tag === null ? {} : { headers: { 'If-Match': tag } }),
  );
}

/** The entity tag of a file that is as it was shown. */
export async function tagOf({ url, digest }: ApiFile): Promise<string | null> {
  const { headers } = await send('HEAD', belowPrefix(url), { headers: { 'Want-Repr-Digest': 'sha-256=1' } });
  return headers.get('Repr-Digest') === digest ? headers.get('ETag') : '"changed"';
}

/** An address for elements of the page, which send no key. @returns undefined if there is none */
export async function linkOf({ url }: ApiFile): Promise<string | undefined> {
  const { json } = await send('POST', `${belowPrefix(url)}/link`, { json: {} });
  return isObject(json) && typeof json.url === 'string' ? prefix + belowPrefix(json.url) : undefined;
}

/** The first preview of a file as a `data:` URL, which needs no credential. @returns undefined if none can be made */
export async function previewOf({ previews = {} }: ApiFile): Promise<string | undefined> {
  const [url] = Object.values(previews);
  if (url === undefined) return undefined;
  const octets = await clientNow()
    .request('GET', prefix + belowPrefix(url))
    .catch(() => undefined);
  if (!(octets instanceof Uint8Array)) return undefined;
  const text = Array.from(octets, (octet) => String.fromCharCode(octet)).join('');
  return `data:;base64,${btoa(text)}`;
}

const shownImages = /^image\/(?:png|jpeg|gif|webp|avif|bmp|x-icon)$/;
const played = /^(audio|video)\//;

/** The element that shows a file, if this browser can. */
export function elementFor({ type }: ApiFile): 'img' | 'audio' | 'video' | undefined {
  if (shownImages.test(type)) return 'img';
  const kind = played.exec(type)?.[1] as 'audio' | 'video' | undefined;
  return kind !== undefined && document.createElement(kind).canPlayType(type) !== '' ? kind : undefined;
}

const units = ['bytes', 'KiB', 'MiB', 'GiB'];

/** `1.2 MiB` */
export function bytesText(bytes: number): string {
  const unit = Math.min(units.length - 1, bytes === 0 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const number = (bytes / 1024 ** unit).toLocaleString('en', { maximumFractionDigits: 1 });
  return `${number} ${units[unit]}`;
}
