/** The part of the attacker's list (growth-attacks.ts) that sends and reads files. */
import { type Ask, type Attack, boundary, many, ofOwn, part } from './growth-attacks.ts';

const octets = { 'Content-Type': 'application/octet-stream' };
const mebibyte = Buffer.alloc(1024 * 1024, 'x');
const tus = { 'Tus-Resumable': '1.0.0' };
/** 16 ranges of a KiB each, as many as one response has. */
const ranges = `bytes=${many(16, (index) => `${index * 8192}-${index * 8192 + 1023}`).join(',')}`;

/** Documents, each with a file of `length` octets. */
const filed = (count: number, length: number) => async (ask: Ask) => {
  const ids: string[] = [];
  for (let made = 0; made < count; made += 1) {
    const { id } = await ask('POST', 'filed', { json: { title: 'filed' } });
    await ask('PUT', `filed/${id}/file`, { headers: octets, body: Buffer.alloc(length, 'x') });
    ids.push(String(id));
  }
  return ids;
};

const formOfFiles = [
  part('title', 'filed'),
  ...many(100, () => part('files', 'x', '; filename="a"')),
  `--${boundary}--\r\n`,
].join('');

export const fileAttacks: readonly Attack[] = [
  {
    name: 'forms of many files',
    atOnce: 1000,
    target: () => 'POST filed',
    content: () => Buffer.from(formOfFiles),
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
  },
  {
    name: 'files',
    atOnce: 1000,
    isWorst: true,
    receives: true,
    target: ofOwn('PUT', 'filed/{id}/file'),
    standsFor: ['POST {collection}/{id}/file', 'POST {collection}/{id}/files'],
    content: () => mebibyte,
    headers: octets,
    prepare: filed(100, 1),
  },
  {
    name: 'reads of files that nobody reads',
    atOnce: 1000,
    isWorst: true,
    target: ofOwn('GET', 'filed/{id}/file'),
    standsFor: ['GET {collection}/{id}/files/{fileId}', 'GET /files/{token}'],
    prepare: filed(2, 32 * 1024 * 1024),
    isSlow: true,
  },
  {
    name: 'reads of 16 ranges of files',
    atOnce: 1000,
    target: ofOwn('GET', 'filed/{id}/file'),
    headers: { Range: ranges },
    prepare: filed(2, 1024 * 1024),
  },
  {
    name: 'uploads that begin',
    atOnce: 1000,
    target: () => 'POST uploads',
    headers: { ...tus, 'Upload-Length': '1000000' },
  },
  {
    name: 'uploads with their octets',
    atOnce: 1000,
    target: () => 'POST uploads',
    standsFor: ['PATCH /uploads/{id}'],
    content: () => mebibyte,
    headers: { ...tus, 'Upload-Length': '2000000', 'Content-Type': 'application/offset+octet-stream' },
  },
];

export const boundedFileRoutes = {
  why: 'changes a row of a file or an upload, or signs what names one',
  routes: [
    ...['DELETE {collection}/{id}/file', 'DELETE {collection}/{id}/files/{fileId}'],
    ...['POST {collection}/{id}/file/link', 'POST {collection}/{id}/files/{fileId}/link'],
    ...['GET /uploads/{id}', 'DELETE /uploads/{id}'],
  ],
};
