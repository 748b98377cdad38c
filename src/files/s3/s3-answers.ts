/** Answers of S3 in XML, read as values: https://docs.aws.amazon.com/AmazonS3/latest/API. Whatever has another root is no answer of a store. */
import { parseXml, type XmlDocument, XmlElement } from '@rgrove/parse-xml';

/** The content is not what S3 answers to the request: a page of a proxy, or another protocol. */
export class AnswerUnfit extends Error {
  override readonly name = 'AnswerUnfit';
}

export type StoreError = {
  readonly code: string;
  readonly message: string;
  readonly region: string | undefined;
};

export type Listing = {
  readonly entries: readonly { readonly key: string; readonly bytes: number }[];
  /** For the next page; undefined at the last one. */
  readonly next: string | undefined;
};

export type Uploads = {
  readonly uploads: readonly { readonly key: string; readonly id: string }[];
  readonly next: { readonly key: string; readonly id: string } | undefined;
};

/** How a store shows what it has kept; each may be missing. */
export type Evidence = { readonly etag: string | undefined; readonly sha256: string | undefined };

const textCharactersMax = 300;
const digits = /^\d{1,16}$/;

/** Undefined if the content is no error of S3, which is also so for an empty one. */
export function readStoreError(text: string): StoreError | undefined {
  if (!text.includes('<Error')) return undefined;
  const root = rootOf(text);
  if (root?.name !== 'Error') return undefined;
  const code = textOf(root, 'Code') ?? '';
  return {
    code,
    message: (textOf(root, 'Message') ?? '').slice(0, textCharactersMax),
    region: textOf(root, 'Region'),
  };
}

/** ListObjectsV2. @throws AnswerUnfit */
export function readListing(text: string): Listing {
  const root = expectRoot(text, 'ListBucketResult');
  const entries = elementsOf(root, 'Contents').map((entry) => {
    const bytes = needed(entry, 'Size');
    if (!digits.test(bytes)) throw new AnswerUnfit('a listing of the bucket has a size that is not a number');
    return { key: needed(entry, 'Key'), bytes: Number(bytes) };
  });
  return { entries, next: isTruncated(root) ? needed(root, 'NextContinuationToken') : undefined };
}

/** CreateMultipartUpload. @throws AnswerUnfit */
export function readUploadId(text: string): string {
  return needed(expectRoot(text, 'InitiateMultipartUploadResult'), 'UploadId');
}

/** ListMultipartUploads. @throws AnswerUnfit */
export function readUploads(text: string): Uploads {
  const root = expectRoot(text, 'ListMultipartUploadsResult');
  const uploads = elementsOf(root, 'Upload').map((upload) => ({
    key: needed(upload, 'Key'),
    id: needed(upload, 'UploadId'),
  }));
  if (!isTruncated(root)) return { uploads, next: undefined };
  return { uploads, next: { key: needed(root, 'NextKeyMarker'), id: needed(root, 'NextUploadIdMarker') } };
}

/** CompleteMultipartUpload. @throws AnswerUnfit */
export function readCompleted(text: string): Evidence {
  const root = expectRoot(text, 'CompleteMultipartUploadResult');
  return { etag: textOf(root, 'ETag'), sha256: textOf(root, 'ChecksumSHA256') };
}

export type CompletedPart = { readonly number: number; readonly etag: string; readonly sha256: string };

/** The content of CompleteMultipartUpload. Tags come from the store and are escaped. */
export function writeParts(parts: readonly CompletedPart[], withChecksums: boolean): string {
  const written = parts.map(({ number, etag, sha256 }) => {
    const checksum = withChecksums ? `<ChecksumSHA256>${sha256}</ChecksumSHA256>` : '';
    return `<Part><PartNumber>${number}</PartNumber><ETag>${escaped(etag)}</ETag>${checksum}</Part>`;
  });
  const space = 'http://s3.amazonaws.com/doc/2006-03-01/';
  return `<CompleteMultipartUpload xmlns="${space}">${written.join('')}</CompleteMultipartUpload>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function isTruncated(root: XmlElement): boolean {
  return textOf(root, 'IsTruncated') === 'true';
}

function expectRoot(text: string, name: string): XmlElement {
  const root = rootOf(text);
  if (root?.name === name) return root;
  throw new AnswerUnfit(`the answer of the bucket is no ${name}`);
}

function rootOf(text: string): XmlElement | undefined {
  let document: XmlDocument;
  try {
    document = parseXml(text);
  } catch {
    // Not XML: the caller says what was expected.
    return undefined;
  }
  return document.root ?? undefined;
}

function elementsOf(parent: XmlElement, name: string): readonly XmlElement[] {
  return parent.children.filter(
    (child): child is XmlElement => child instanceof XmlElement && child.name === name,
  );
}

function textOf(parent: XmlElement, name: string): string | undefined {
  return elementsOf(parent, name)[0]?.text;
}

function needed(parent: XmlElement, name: string): string {
  const text = textOf(parent, name);
  if (text === undefined || text === '') throw new AnswerUnfit(`the answer of the bucket has no ${name}`);
  return text;
}
