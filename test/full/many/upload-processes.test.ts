/**
 * One resumable upload by several processes on one database, with files in a folder that they share and in a bucket, where each has a data folder
 * of its own: requests go to either process, at once too, and one is killed or put to sleep in the middle. No octet is lost, doubled or another.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { type ClientRequest, request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { adminKey } from '../../harness/exchange.ts';
import { databaseOfProgram } from '../../harness/program-database.ts';
import { roundsOf } from '../../harness/rounds.ts';
import { type S3Double, startS3Double } from '../../harness/s3-double.ts';
import { type ServerProcess, spawnServer } from '../../harness/server-process.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';

const config = fileURLToPath(new URL('../../wire/files/fixtures/files.config.ts', import.meta.url));
const tus = { 'Tus-Resumable': '1.0.0' };
const secret = { COMITY_SECRET_KEY: randomBytes(32).toString('base64') };
const rounds = roundsOf(10, 100);
const KiB = 1024;
/** A process that was killed counts as gone after 15 s. */
const goneWithinMs = 40_000;

type Processes = [ServerProcess, ServerProcess];

for (const place of ['a folder that they share', 'a bucket'] as const) {
  describe(`uploads by two processes, with files in ${place}`, () => {
    let start: (index: 0 | 1) => Promise<ServerProcess>;
    let programs: Processes;
    const started: ServerProcess[] = [];
    let double: S3Double | undefined;
    let dispose: () => Promise<void>;
    const folders = [temporaryFolder(), temporaryFolder()] as const;
    const shared = temporaryFolder();
    const isBucket = place === 'a bucket';

    before(async () => {
      const database = await databaseOfProgram(config);
      double = isBucket ? await startS3Double() : undefined;
      const files: Record<string, string> =
        double === undefined
          ? { COMITY_FILES_URL: String(pathToFileURL(shared)) }
          : {
              COMITY_FILES_URL: double.filesUrl(),
              COMITY_FILES_S3_ACCESS_KEY: double.credential.accessKey,
              COMITY_FILES_S3_SECRET_KEY: double.credential.secretKey,
            };
      const env = { COMITY_DATABASE_URL: database.url, COMITY_RATE_LIMIT_WRITES: '0', ...secret, ...files };
      start = async (index) => {
        const program = await spawnServer({ config, folder: folders[index], env });
        started.push(program);
        return program;
      };
      programs = await Promise.all([start(0), start(1)]);
      dispose = () => database.dispose();
    });
    after(async () => {
      await Promise.all(started.map((program) => program.kill()));
      await double?.close();
      await dispose?.();
    });

    const begin = async (program: ServerProcess, length: number): Promise<string> => {
      const headers = { ...tus, 'Upload-Length': String(length) };
      return String((await program.send('POST', 'uploads', { headers, expect: 201 })).headers.location);
    };
    const piece = (program: ServerProcess, path: string, offset: number, octets: Buffer) =>
      program.send('PATCH', path, {
        headers: {
          ...{ ...tus, 'Content-Type': 'application/offset+octet-stream' },
          'Upload-Offset': String(offset),
        },
        body: octets,
      });
    const offsetAt = async (program: ServerProcess, path: string): Promise<number | undefined> => {
      const { status, headers } = await program.send('HEAD', path, { headers: tus });
      assert.ok(status === 204 || status === 404);
      return status === 204 ? Number(headers['upload-offset']) : undefined;
    };
    /**
     * Gives the upload to a document, and compares what can be read then.
     * @param parts what each part may be @param isLeft a process that was killed may have left a file
     */
    const assertTaken = async (
      program: ServerProcess,
      path: string,
      parts: readonly (readonly Buffer[])[],
      isLeft = false,
    ): Promise<void> => {
      const id = path.split('/').at(-1) ?? '';
      const ticket = (await program.send('POST', 'tickets', { json: { title: 'a' }, expect: 201 })).json();
      const json = { attachment: { upload: id } };
      const { attachment } = (
        await program.send('PATCH', `tickets/${ticket.id}`, { json, expect: 200 })
      ).json();
      const headers = { Authorization: `Bearer ${adminKey}` };
      const answer = await fetch(`http://127.0.0.1:${program.port}${attachment.url}`, { headers });
      const octets = Buffer.from(await answer.arrayBuffer());
      let at = 0;
      for (const candidates of parts) {
        const found = candidates.find((part) => part.equals(octets.subarray(at, at + part.length)));
        assert.ok(found !== undefined, `octets from ${at} are those that were sent`);
        at += found.length;
      }
      assert.deepEqual([octets.length, attachment.bytes], [at, at]);
      assert.equal(attachment.digest, `sha-256=:${createHash('sha256').update(octets).digest('base64')}:`);
      const keys = double === undefined ? [] : [...double.objects.keys()].filter((key) => key.includes(id));
      if (isBucket) assert.equal(keys.length, 1, 'no octets of pieces are left');
      const incoming = [...folders.map((each) => join(each, 'files/incoming')), join(shared, 'incoming')];
      for (const folder of isLeft ? [] : incoming) {
        const left = (await readdir(folder).catch(() => [])).filter((name) => name.startsWith(id));
        assert.deepEqual(left, []);
      }
    };
    /** Begins a piece of which only the first octets are sent. */
    const hang = (
      { port }: ServerProcess,
      path: string,
      { offset, length, octets }: { offset: number; length: number; octets: Buffer },
    ): ClientRequest => {
      const headers = {
        ...{ ...tus, Authorization: `Bearer ${adminKey}`, 'Upload-Offset': String(offset) },
        ...{ 'Content-Type': 'application/offset+octet-stream', 'Content-Length': length },
      };
      const sent = request({ host: '127.0.0.1', port, path, method: 'PATCH', headers, agent: false });
      sent.on('error', () => undefined);
      sent.on('response', (answer) => answer.resume());
      sent.write(octets);
      return sent;
    };

    test('each request may go to another process', async () => {
      const octets = randomBytes(300 * KiB);
      const [first, second] = programs;
      const path = await begin(first, octets.length);
      let offset = 0;
      for (const program of [second, first, first, second, first]) {
        assert.equal(await offsetAt(program === first ? second : first, path), offset);
        const part = octets.subarray(offset, offset + 60 * KiB);
        assert.equal((await piece(program, path, offset, part)).status, 204);
        offset += part.length;
      }
      await assertTaken(second, path, [[octets]]);
    });

    test('of two pieces for the same offset at both processes one is taken', async () => {
      const path = await begin(programs[0], rounds * KiB);
      const taken: Buffer[][] = [];
      while (taken.length < rounds) {
        const offset = taken.length * KiB;
        const parts = [randomBytes(KiB), randomBytes(KiB), randomBytes(KiB), randomBytes(KiB)];
        const answers = await Promise.all(
          parts.map((part, index) => piece(programs[index % 2 === 0 ? 0 : 1], path, offset, part)),
        );
        const statuses = answers.map(({ status }) => status);
        const winners = parts.filter((_, index) => statuses[index] === 204);
        assert.ok(
          statuses.every((status) => status === 204 || status === 409 || status === 423),
          String(statuses),
        );
        assert.ok(winners.length <= 1, String(statuses));
        // One that another ended may have come whole, or not at all: then the client asks for the offset.
        const reached = await offsetAt(programs[0], path);
        if (winners.length > 0) assert.equal(reached, offset + KiB);
        if (reached === offset + KiB) taken.push(winners.length > 0 ? winners : parts);
        else assert.equal(reached, offset);
      }
      await assertTaken(programs[1], path, taken);
    });

    test('it goes on at the other process after one was killed, or put to sleep, within a piece', async () => {
      const octets = randomBytes(400 * KiB);
      const extra = [await start(0), await start(1)] as const;
      const lost = await begin(extra[0], octets.length);
      const synced = await begin(extra[0], octets.length);
      const asleep = await begin(extra[1], octets.length);
      const begun = async (program: ServerProcess, path: string): Promise<ClientRequest> => {
        assert.equal((await piece(program, path, 0, octets.subarray(0, 100 * KiB))).status, 204);
        const sent = octets.subarray(100 * KiB, 150 * KiB);
        return hang(program, path, { ...{ offset: 100 * KiB, length: 300 * KiB }, octets: sent });
      };
      const sending = await begun(extra[0], synced);
      // A piece is synced when octets come a second after the last sync.
      let at = 150 * KiB;
      await until(async () => {
        sending.write(octets.subarray(at, at + 256));
        at += 256;
        return (await offsetAt(programs[1], synced)) !== 100 * KiB;
      });
      await begun(extra[0], lost);
      await begun(extra[1], asleep);
      // Long enough for both rows to name their writers, shorter than the interval of a sync.
      await pause(700);
      await extra[0].kill();
      extra[1].process.kill('SIGSTOP');
      /** Sends the next octets at the other process, until it knows that the writer is gone. @returns the last status */
      const goOn = async (path: string): Promise<number> => {
        const end = Date.now() + goneWithinMs;
        for (;;) {
          const offset = await offsetAt(programs[1], path);
          if (offset === undefined) return 404;
          assert.ok(offset >= 100 * KiB && offset < 200 * KiB);
          const { status } = await piece(programs[1], path, offset, octets.subarray(offset, 200 * KiB));
          if (status !== 423) return status;
          assert.ok(Date.now() < end);
          await pause(500);
        }
      };
      try {
        const statuses = await Promise.all([lost, asleep, synced].map(goOn));
        // Octets that were synced, and not handed over, are where the process was: there it goes on.
        assert.deepEqual(statuses, [204, 204, isBucket ? 404 : 204]);
      } finally {
        extra[1].process.kill('SIGCONT');
      }
      for (const path of [lost, asleep, synced]) {
        const offset = (await offsetAt(programs[0], path)) ?? 0;
        assert.ok(offset > 100 * KiB);
        assert.equal((await piece(programs[0], path, offset, octets.subarray(offset))).status, 204);
        await assertTaken(programs[0], path, [[octets]], isBucket && path === lost);
      }
      await extra[1].kill();
    });
  });
}
