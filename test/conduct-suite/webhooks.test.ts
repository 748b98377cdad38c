/** The suite's clauses of receivers and senders of webhooks, against Comity as both. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { judgeClauses } from '../../conduct/judge.ts';
import { unknownSurvey } from '../../conduct/survey.ts';
import { targetAt } from '../../conduct/target.ts';
import { receiverClauses } from '../../conduct/webhooks/receiver.ts';
import { listenForSender } from '../../conduct/webhooks/sender.ts';
import type { Scheme } from '../../conduct/webhooks/signature.ts';
import { startServer } from '../harness/running-server.ts';
import { until } from '../harness/until.ts';
import { brokenOf } from './verdicts.ts';

const config = fileURLToPath(new URL('fixtures/hooks.config.ts', import.meta.url));
const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const names = ['standard', 'timestamped', 'stripe', 'plain', 'github'] as const;
const secrets = Object.fromEntries(names.map((name) => [`${name.toUpperCase()}_WEBHOOK_SECRET`, secret]));
// A silent receiver is given up within the test.
const env = { ...secrets, COMITY_EGRESS_ALLOW: '127.0.0.0/8', COMITY_WEBHOOK_TIMEOUT_MS: '3000' };

describe('the suite of conduct, at the receiver of Comity', () => {
  for (const scheme of names satisfies readonly Scheme[]) {
    it(`finds that every clause holds for the scheme ${scheme}`, async (context) => {
      const server = await startServer({ config, env });
      context.after(() => server.stop());
      const target = targetAt(`http://127.0.0.1:${server.port}/api/v1/webhooks/${scheme}`, {});
      const clauses = receiverClauses({ scheme, secret });
      const report = await judgeClauses(
        { target, survey: unknownSurvey, mayWrite: true },
        clauses,
        () => undefined,
      );
      assert.deepEqual(brokenOf(report), []);
    });
  }
});

describe('the suite of conduct, at the sender of Comity', () => {
  it('finds that every clause holds', async (context) => {
    const server = await startServer({ config, env });
    context.after(() => server.stop());
    const run = await listenForSender(0);
    const made: string[] = [];
    context.after(() => run.finish(made));
    for (const url of run.urls) {
      const answer = await server.send('POST', 'endpoints', {
        json: { url, events: ['notes.*'] },
        expect: { status: 201 },
      });
      made.push(answer.json().secret);
    }
    await server.send('POST', 'notes', { json: { title: 'one' }, expect: { status: 201 } });
    await until(() => run.heard('/fails') >= 3 && run.heard('/limits') >= 2 && run.heard('/silent') >= 2);
    const report = await run.finish(made);
    assert.deepEqual(brokenOf(report), []);
    assert.equal(report.summary['not-applicable'], 0);
  });
});
