/** Settings of files: where they are kept and how much of them, and for how long uploads wait for a document. */
import { refuseFilesUrl } from '../files-url.ts';
import { fixed, integer, section, text } from '../setting.ts';

const MiB = 1024 ** 2;
const TiB = 1024 ** 4;
const hourS = 3600;
const dayS = 86_400;

export const filesSettings = section('Files', {
  filesUrl: text(
    undefined,
    { charactersMax: 2048, refuse: refuseFilesUrl },
    'Where files are kept: `file:///folder`, or `s3://bucket/prefix?endpoint=https://s3.example&region=...&style=path` (or `style=virtual`). Without it in the folder `files` of `data`; with `databaseUrl` it must be set, and all processes must reach it.',
  ),
  filesS3AccessKey: text(
    undefined,
    { charactersMax: 256, secret: true },
    'Access key of the bucket; without it, and without the two below, the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of AWS hold.',
  ),
  filesS3SecretKey: text(
    undefined,
    { charactersMax: 256, secret: true },
    'Secret of the access key. It signs requests and never leaves the program.',
  ),
  filesS3SessionToken: text(
    undefined,
    { charactersMax: 8192, secret: true },
    'Token of a temporary access key, which ends with it: Comity renews none.',
  ),
  filesS3ConnectionsMax: integer(
    { unit: 'connections', default: 64, least: 1, most: 1024 },
    'Connections to the bucket. A download holds one until it ends; who gets none within `filesS3TimeoutMs` is answered 503.',
  ),
  filesS3TimeoutMs: integer(
    { unit: 'ms', default: 15_000, least: 100, most: 600_000 },
    'Time in which the bucket must take or give an octet; then the attempt has failed.',
  ),
  filesS3AttemptsMax: fixed(
    { unit: 'attempts', value: 4 },
    'Attempts at a request to the bucket that fails in a way that passes; then 503.',
  ),
  filesS3PartBytesMin: fixed(
    { unit: 'bytes', value: 16 * MiB },
    'Length of the parts in which files above 64 MiB are put into the bucket. It grows with the file, because no file has more than 10,000.',
  ),
  filesCollectionBytesMax: integer(
    { unit: 'bytes', default: 0, least: 0, most: 512 * TiB, isCommon: true },
    'Octets that the files of one collection may have together; then 413. 0: no limit.',
  ),
  filesTenantBytesMax: integer(
    { unit: 'bytes', default: 0, least: 0, most: 512 * TiB, isCommon: true },
    'Octets that the files of one tenant may have together, by the tenants of those who sent them; then 413. 0: no limit.',
  ),
  filesPrincipalBytesMax: integer(
    { unit: 'bytes', default: 0, least: 0, most: 512 * TiB, isCommon: true },
    'Octets that the files of one principal may have together; then 413. Administrators have no such limit. 0: no limit.',
  ),
  uploadSeconds: integer(
    { unit: 'seconds', default: dayS, least: 1, most: 366 * dayS, isCommon: true },
    'Time for which an upload may be continued, and for which a finished one waits for a document; then its octets are removed.',
  ),
  fileLinkSecondsMax: integer(
    { unit: 'seconds', default: 7 * dayS, least: 1, most: 366 * dayS },
    'Longest validity of a signed link to a file; `expiresIn` of a request may be shorter.',
  ),
  fileLinkSeconds: fixed(
    { unit: 'seconds', value: hourS },
    'Validity of a signed link to a file for which the request says no `expiresIn`.',
  ),
  previewProcesses: integer(
    { unit: 'processes', default: 0, least: 0, most: 64 },
    'Processes that make previews, each 60 MB and the image. They start when they are needed and end after 30 seconds without work. 0: one for two processors.',
  ),
  previewsWaitingMax: integer(
    { unit: 'previews', default: 200, least: 1, most: 100_000 },
    'Previews that wait to be made; then 503 with Retry-After.',
  ),
  previewTimeoutMs: integer(
    { unit: 'ms', default: 20_000, least: 100, most: 600_000 },
    'Time for a preview to be made; then there is none of that image.',
  ),
  previewSourcePixelsMax: integer(
    { unit: 'pixels', default: 50_000_000, least: 1, most: 1_000_000_000 },
    'Pixels of an image of which previews are made. One may take 8 octets of memory, in one process.',
  ),
  previewSourceBytesMax: integer(
    { unit: 'bytes', default: 64 * MiB, least: 1, most: 1024 * MiB },
    'Octets of an image of which previews are made.',
  ),
});
