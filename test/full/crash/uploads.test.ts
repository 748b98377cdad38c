/** Kills during resumable uploads: the offset after the restart is one whose octets are there, and the whole is what was sent. */
import assert from 'node:assert/strict';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { adminKey } from '../../harness/exchange.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const config = fileURLToPath(new URL('../../wire/files/fixtures/files.config.ts', import.meta.url));
const rounds = roundsOf(1, 20);
const folder = temporaryFolder();
const length = 20 * 1024 * 1024;
let program: ServerProcess = await spawnServer({ config, folder });
after(() => program.kill());

/** Sends a piece, slowly enough to be killed within it. @returns the status; undefined: there was no answer */
function sendPiece(port: number, path: string, offset: number, octets: Buffer): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const headers = {
    ...{ Authorization: `Bearer ${adminKey}`, 'Tus-Resumable': '1.0.0', 'Upload-Offset': String(offset) },
    ...{ 'Content-Type': 'application/offset+octet-stream', 'Content-Length': octets.length },
  };
  const sent = request(
    { host: '127.0.0.1', port, path, method: 'PATCH', headers, agent: false },
    (answer) => {
      answer.resume();
      answer.on('close', () => resolve(answer.statusCode));
    },
  );
  sent.on('error', () => resolve(undefined));
  const write = async (): Promise<void> => {
    const part = 256 * 1024;
    for (let at = 0; at < octets.length && !sent.destroyed; at += part) {
      if (!sent.write(octets.subarray(at, at + part)))
        await Promise.race([new Promise((go) => sent.once('drain', go)), promise]);
      await pause(1);
    }
    sent.end();
  };
  void write();
  return promise;
}

for (let round = 1; round <= rounds; round += 1) {
  test(`round ${round}: an upload goes on after kills, and its document has all octets`, async () => {
    const octets = randomBytes(length);
    const headers = { 'Tus-Resumable': '1.0.0', 'Upload-Length': String(length) };
    const made = await program.send('POST', 'uploads', { headers, expect: 201 });
    const path = String(made.headers.location);
    let told = 0;
    for (let kills = 0; ; ) {
      const looked = await program.send('HEAD', path, { headers: { 'Tus-Resumable': '1.0.0' }, expect: 204 });
      const offset = Number(looked.headers['upload-offset']);
      assert.ok(offset >= told, 'no offset of an answer is taken back');
      told = offset;
      if (looked.headers['upload-complete'] === '?1') break;
      const sending = sendPiece(program.port, path, offset, octets.subarray(offset));
      if (kills < 2) {
        kills += 1;
        await pause(randomInt(400));
        await program.kill();
        await sending;
        program = await spawnServer({ config, folder });
      } else await sending;
    }
    const id = path.split('/').at(-1) ?? '';
    const { id: ticket } = (
      await program.send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })
    ).json();
    const json = { attachment: { upload: id } };
    const { attachment } = (await program.send('PATCH', `tickets/${ticket}`, { json, expect: 200 })).json();
    assert.equal(attachment.digest, `sha-256=:${createHash('sha256').update(octets).digest('base64')}:`);
    assert.deepEqual(await readdir(join(folder, 'files', 'incoming')), []);
  });
}
