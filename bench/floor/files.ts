/**
 * The floor of files: `node:http` with `pipeline`. GET sends a file of the folder, with one range; PUT writes one and synchronises it to the
 * disk before its answer; DELETE removes one.
 *
 * Usage: node bench/floor/files.ts FOLDER
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { open, stat, unlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { announce } from './announce.ts';

const [folder = ''] = process.argv.slice(2);
const rangeForm = /^bytes=(\d+)-(\d+)$/;

const server = createServer(async (request, response) => {
  const path = join(folder, basename(request.url ?? ''));
  if (request.method === 'PUT') {
    const file = await open(path, 'w');
    await pipeline(request, createWriteStream(path, { fd: file.fd, autoClose: false }));
    await file.sync();
    await file.close();
    response.writeHead(201, { 'Content-Length': 0 }).end();
    return;
  }
  if (request.method === 'DELETE') {
    await unlink(path);
    response.writeHead(204).end();
    return;
  }
  const { size } = await stat(path);
  const [, first = '0', last = String(size - 1)] = rangeForm.exec(request.headers.range ?? '') ?? [];
  const [start, end] = [Number(first), Number(last)];
  response.writeHead(request.headers.range === undefined ? 200 : 206, { 'Content-Length': end - start + 1 });
  await pipeline(createReadStream(path, { start, end }), response);
});
announce(server);
