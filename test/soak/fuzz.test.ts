/**
 * 10^6 random HTTP/2 frame sequences and 10^6 HTTP/1.1 requests, or as many as COMITY_SOAK_SECONDS (3,600) of each kind allow, which it reports: the program lives, answers its health
 * after each batch, and no error reaches the event loop. COMITY_FUZZ_SEED repeats a run from where it failed; COMITY_FUZZ_COUNT sends fewer.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { frameSequence, fuzz, requestText } from '../full/attack/fuzz.ts';
import { spawnServer } from '../harness/server-process.ts';

const seconds = Number(process.env.COMITY_SOAK_SECONDS ?? 3_600);
const seed = Number(process.env.COMITY_FUZZ_SEED ?? Date.now() % 1_000_000_000);
const count = Number(process.env.COMITY_FUZZ_COUNT ?? 1_000_000);

for (const [what, make] of [
  ['HTTP/2 frame sequences', frameSequence],
  ['HTTP/1.1 requests', requestText],
] as const) {
  it(`lives and answers its health through random ${what}`, async (context) => {
    const program = await spawnServer({ env: { COMITY_LOG_LEVEL: 'fatal' } });
    context.after(() => program.stop());
    const check = (): void => {
      assert.equal(program.process.exitCode, null, `the program ended:\n${program.stderr()}`);
    };
    const untilMs = performance.now() + seconds * 1000;
    const { sent, answered } = await fuzz({ port: program.port, seed, count, make, check, untilMs });
    process.stdout.write(`${what}: ${sent} sent, ${answered} answered, from the seed ${seed}\n`);
    assert.ok(answered > sent * 0.9, `only ${answered} of ${sent} were answered`);
    assert.equal(program.stderr(), '');
  });
}
