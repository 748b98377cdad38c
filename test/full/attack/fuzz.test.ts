/** Some thousands of random frame sequences and requests; test/soak/fuzz.test.ts sends 10^6 of each. COMITY_FUZZ_SEED repeats a run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spawnServer } from '../../harness/server-process.ts';
import { frameSequence, fuzz, requestText } from './fuzz.ts';

const seed = Number(process.env.COMITY_FUZZ_SEED ?? Date.now() % 1_000_000_000);

for (const [what, make] of [
  ['HTTP/2 frame sequences', frameSequence],
  ['HTTP/1.1 requests', requestText],
] as const) {
  test(`lives and answers its health through random ${what} (seed ${seed})`, async (t) => {
    const program = await spawnServer({ env: { COMITY_LOG_LEVEL: 'fatal' } });
    t.after(() => program.stop());
    const check = (): void => {
      assert.equal(program.process.exitCode, null, `the program ended:\n${program.stderr()}`);
    };
    const { sent, answered } = await fuzz({ port: program.port, seed, count: 2_000, make, check });
    assert.equal(sent, 2_000);
    assert.ok(answered > sent * 0.9, `only ${answered} of ${sent} were answered`);
    assert.equal(program.stderr(), '');
  });
}
