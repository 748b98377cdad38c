/**
 * Where files are kept, as `COMITY_FILES_URL` says it: `file:///folder`, or `s3://bucket/prefix?endpoint=...&region=...&style=...`. A URL of a
 * bucket holds no credential, and takes a region that it does not name from `AWS_REGION`, as programs of AWS do.
 */
import { fileURLToPath } from 'node:url';
import { isLoopbackHost } from './oauth-providers.ts';

export type FilesLocation = { readonly kind: 'folder'; readonly folder: string } | BucketLocation;

export type BucketLocation = {
  readonly kind: 'bucket';
  readonly bucket: string;
  /** In front of every key: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Origin that requests go to. */
  readonly origin: string;
  /** Path of the bucket at the origin: `/bucket`, or empty where the host names it. */
  readonly path: string;
  readonly region: string;
};

/** `refused` is the predicate of a sentence whose subject is the URL. */
type Refused = { readonly refused: string };

const example = 'a URL such as file:///srv/files or s3://bucket?region=eu-central-1';
const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const prefixPattern = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*\/)*$/;
const regionPattern = /^[A-Za-z0-9_-]{1,64}$/;
const addressHost = /^(?:\[.*\]|[\d.]+)$/;
const parameters = ['endpoint', 'region', 'style'];
const fileUrl = /^file:\//i;
const serverUrl = /^https?:\/\//i;
const firstSlash = /^\//;
const lastOther = /([^/])$/;
/** The region of stores that have none, such as MinIO. */
const regionOfOthers = 'us-east-1';

export function readFilesUrl(text: string): FilesLocation | Refused {
  if (!URL.canParse(text)) return refuse(`must be ${example}`);
  const url = new URL(text);
  if (url.hash !== '') return refuse('must have no fragment');
  if (url.protocol === 'file:') return readFolderUrl(text, url);
  return url.protocol === 's3:' ? readBucketUrl(url) : refuse(`must be ${example}`);
}

/** The mistake in a URL, or undefined. A missing region is none: `AWS_REGION` may name it. */
export function refuseFilesUrl(text: string): string | undefined {
  const location = readFilesUrl(withRegion(text, regionOfOthers));
  return 'refused' in location ? location.refused : undefined;
}

/** The location in a setting, which the loader has checked. */
export function filesLocation(filesUrl: string): FilesLocation {
  const location = readFilesUrl(filesUrl);
  if ('refused' in location) throw new Error(`COMITY_FILES_URL ${location.refused}`);
  return location;
}

function readFolderUrl(text: string, url: URL): FilesLocation | Refused {
  // A URL parser makes `file:files` the folder /files.
  if (!fileUrl.test(text) || url.host !== '' || url.search !== '') {
    return refuse('must name a folder by an absolute path, such as file:///srv/files');
  }
  try {
    return { kind: 'folder', folder: fileURLToPath(url) };
  } catch {
    return refuse('must name a folder without an encoded slash');
  }
}

function readBucketUrl({
  hostname,
  port,
  username,
  password,
  pathname,
  searchParams,
}: URL): FilesLocation | Refused {
  if (username !== '' || password !== '') {
    return refuse('must hold no credential: set COMITY_FILES_S3_ACCESS_KEY and COMITY_FILES_S3_SECRET_KEY');
  }
  if (!bucketName.test(hostname) || port !== '') {
    return refuse('must name a bucket, as in s3://bucket: 3 to 63 small letters, digits, "-" and "."');
  }
  const unknown = [...searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined)
    return refuse(`has the parameter "${unknown}", and may have endpoint, region and style`);
  const twice = parameters.find((name) => searchParams.getAll(name).length > 1);
  if (twice !== undefined) return refuse(`has the parameter "${twice}" twice`);
  const prefix = pathname.replace(firstSlash, '').replace(lastOther, '$1/');
  if (!prefixPattern.test(prefix)) {
    return refuse(
      'may have a prefix of letters, digits, ".", "_" and "-" between slashes, as in s3://bucket/comity/files',
    );
  }
  return readEndpoint({ bucket: hostname, prefix }, searchParams);
}

function readEndpoint(
  named: Pick<BucketLocation, 'bucket' | 'prefix'>,
  given: URLSearchParams,
): FilesLocation | Refused {
  const { bucket } = named;
  const endpoint = given.get('endpoint') ?? undefined;
  const region = given.get('region') ?? (endpoint === undefined ? undefined : regionOfOthers);
  if (region === undefined) {
    return refuse(
      'must name the region of a bucket of AWS, as in s3://bucket?region=eu-central-1, or the endpoint of another store',
    );
  }
  if (!regionPattern.test(region)) return refuse('must have a region of letters, digits, "-" and "_"');
  const server = endpoint ?? `https://s3.${region}.amazonaws.com`;
  if (!isServer(server))
    return refuse('must have an endpoint such as https://s3.example, without a path and a credential');
  const url = new URL(server);
  // A certificate for *.s3.example is for no name with a further dot (RFC 9525 §6.3).
  const style = given.get('style') ?? (endpoint === undefined && !bucket.includes('.') ? 'virtual' : 'path');
  if (style === 'path') return { kind: 'bucket', ...named, origin: url.origin, path: `/${bucket}`, region };
  if (style !== 'virtual') return refuse('must have the style path or virtual');
  if (addressHost.test(url.hostname))
    return refuse('must have the style path where the endpoint is an address');
  const origin = `${url.protocol}//${bucket}.${url.host}`;
  return { kind: 'bucket', ...named, origin, path: '', region };
}

function isServer(text: string): boolean {
  if (!serverUrl.test(text) || !URL.canParse(text)) return false;
  const { username, password, pathname, search, hash } = new URL(text);
  return username === '' && password === '' && pathname === '/' && search === '' && hash === '';
}

function refuse(refused: string): Refused {
  return { refused };
}

/** The URL of a bucket with a region, if it names none. */
function withRegion(text: string, region: string): string {
  if (!isBucketUrl(text) || new URL(text).searchParams.has('region')) return text;
  return `${text}${text.includes('?') ? '&' : '?'}region=${encodeURIComponent(region)}`;
}

function isBucketUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 's3:';
}

/** As in `Settings`, whose table asks this file. */
type BucketSettings = {
  readonly filesUrl: string | undefined;
  readonly filesS3AccessKey: string | undefined;
  readonly filesS3SecretKey: string | undefined;
  readonly filesS3SessionToken: string | undefined;
};

/** The settings that the variables of AWS fill in: a region, and a credential unless the settings hold a part of one. */
export function bucketDefaults(
  settings: BucketSettings,
  environment: Readonly<Record<string, string | undefined>>,
): Partial<BucketSettings> {
  const { filesUrl, filesS3AccessKey, filesS3SecretKey, filesS3SessionToken } = settings;
  if (filesUrl === undefined || !isBucketUrl(filesUrl)) return {};
  const region = environment.AWS_REGION || environment.AWS_DEFAULT_REGION;
  const located = region ? { filesUrl: withRegion(filesUrl, region) } : {};
  if (filesS3AccessKey ?? filesS3SecretKey ?? filesS3SessionToken) return located;
  return {
    ...located,
    filesS3AccessKey: environment.AWS_ACCESS_KEY_ID || undefined,
    filesS3SecretKey: environment.AWS_SECRET_ACCESS_KEY || undefined,
    filesS3SessionToken: environment.AWS_SESSION_TOKEN || undefined,
  };
}

/** Mistakes that only the settings together have. */
export function bucketMistakes(settings: BucketSettings): readonly string[] {
  const { filesUrl, filesS3AccessKey, filesS3SecretKey } = settings;
  if (filesUrl === undefined) return [];
  const location = readFilesUrl(filesUrl);
  if ('refused' in location) return [`COMITY_FILES_URL ${location.refused}`];
  if (location.kind === 'folder' || (filesS3AccessKey !== undefined && filesS3SecretKey !== undefined))
    return [];
  return [
    'COMITY_FILES_URL names a bucket: set COMITY_FILES_S3_ACCESS_KEY and COMITY_FILES_S3_SECRET_KEY, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  ];
}

/** A warning where files would cross a network in plain text, which only a private one can justify. */
export function bucketWarnings({ filesUrl }: Pick<BucketSettings, 'filesUrl'>): readonly string[] {
  const location = filesUrl === undefined ? undefined : readFilesUrl(filesUrl);
  if (location === undefined || !('origin' in location)) return [];
  const { protocol, hostname } = new URL(location.origin);
  if (protocol === 'https:' || isLoopbackHost(hostname)) return [];
  return [
    `the endpoint of COMITY_FILES_URL is without TLS: files cross the network to ${hostname} in plain text`,
  ];
}
