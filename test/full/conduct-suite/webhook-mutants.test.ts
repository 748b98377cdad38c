/** The clauses of receivers and senders of webhooks hold of a clean one, and each catches the one that breaks it. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { judgeClauses } from '../../../conduct/judge.ts';
import { unknownSurvey } from '../../../conduct/survey.ts';
import { targetAt } from '../../../conduct/target.ts';
import { receiverClauses } from '../../../conduct/webhooks/receiver.ts';
import { type Attempt, senderClauses, senderReport, silenceMs } from '../../../conduct/webhooks/sender.ts';
import { assertCaught, brokenOf } from '../../conduct-suite/verdicts.ts';
import { type Ending, listen } from '../../harness/listening.ts';
import { type Mutant, standBetween } from './standing-between.ts';

const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
const clauses = receiverClauses({ scheme: 'standard', secret });

const accept = (): string => 'HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n';
const refuse = (): string => 'HTTP/1.1 409 Conflict\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const fail = (): string => 'HTTP/1.1 500 Oops\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const any = /^POST/;

const receiverMutants: Readonly<Record<string, Mutant>> = {
  'receiver-valid': { when: any, answer: refuse },
  // It signs the JSON that it parsed.
  'receiver-octets': { when: /12345678901234567890/, answer: refuse },
  'receiver-unsigned': { when: any, answer: accept },
  'receiver-other-secret': { when: any, answer: accept },
  'receiver-tampered': { when: any, answer: accept },
  'receiver-signature-malformed': { when: any, answer: fail },
  'receiver-stale': { when: any, answer: accept },
  'receiver-future': { when: any, answer: accept },
  'receiver-time-tampered': { when: any, answer: accept },
  'receiver-repeated': secondRefused(),
  'receiver-reordered': secondRefused(),
  'receiver-rotated': { when: /v1,\S+ v1,/, answer: refuse },
  'receiver-unknown-type': { when: /conduct\.unknown/, answer: refuse },
  'receiver-big': { when: /Content-Length: 26\d{4}/, answer: refuse },
  'receiver-slow': { when: any, answer: refuse },
  'receiver-form': { when: /form-urlencoded/, answer: fail },
  'receiver-malformed': { when: /\{"a":$/, answer: fail },
  'receiver-verifies-first': { when: /\{"a":$/, answer: fail },
  'receiver-method': { when: /^GET/, answer: accept },
};

function secondRefused(): Mutant {
  let seen = 0;
  return {
    when: any,
    answer: (text) => {
      seen += 1;
      return seen === 2 ? refuse() : text;
    },
  };
}

describe('a clause of receivers', () => {
  it('holds of a receiver that verifies by the published library', async (context) => {
    const report = await judgeReceiver(context, clauses);
    assert.deepEqual(brokenOf(report), []);
    assert.equal(report.summary['not-applicable'], 0);
  });

  for (const clause of clauses) {
    it(`${clause.id} catches the receiver that breaks it`, async (context) => {
      const mutant = receiverMutants[clause.id];
      assert.ok(mutant !== undefined, 'no mutant breaks it');
      const [judged] = (await judgeReceiver(context, [clause], mutant)).clauses;
      assertCaught(judged);
    });
  }
});

async function judgeReceiver(context: Ending, judged: typeof clauses, mutant?: Mutant) {
  const { port } = await listen(createCleanReceiver(), context);
  const own = mutant === undefined ? port : await standBetween(port, mutant, context);
  const target = targetAt(`http://127.0.0.1:${own}/hooks`, {});
  return judgeClauses({ target, survey: unknownSurvey, mayWrite: true }, judged, () => undefined);
}

/** Verifies first, and then takes whatever content there is. */
function createCleanReceiver() {
  const webhook = new Webhook(secret);
  return createServer(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405, { Allow: 'POST' }).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
      const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
      webhook.verify(Buffer.concat(chunks), Object.fromEntries(headers));
    } catch (error) {
      // What the library cannot parse, it has verified.
      if (!(error instanceof SyntaxError)) return void response.writeHead(400).end();
    }
    return void response.writeHead(204).end();
  });
}

const clean: readonly Attempt[] = [
  attempt('/accepts', 0, { id: 'msg_1' }),
  ...[0, 1000, 3000].map((atMs) => attempt('/fails', atMs, { id: 'msg_1' })),
  ...[0, 1000].map((atMs) => attempt('/recovers', atMs, { id: 'msg_1' })),
  ...[0, 4100].map((atMs) => attempt('/limits', atMs, { id: 'msg_1' })),
  attempt('/gone', 0, { id: 'msg_1' }),
  attempt('/redirects', 0, { id: 'msg_1' }),
  ...[0, 20_000].map((atMs) => attempt('/silent', atMs, { id: 'msg_1' })),
];

type Change = {
  readonly id?: string;
  readonly isValid?: boolean;
  readonly seconds?: number;
  readonly type?: string;
};

function attempt(path: Attempt['path'], atMs: number, change: Change): Attempt {
  const { id, isValid = true, seconds = 1000, type = 'application/json' } = change;
  return {
    ...{
      path,
      atMs,
      request: `POST ${path}`,
      arrivedSeconds: 1000,
      contentType: type === '' ? undefined : type,
    },
    verified: { kind: 'standard', isValid, id, seconds },
  };
}

const without = (path: string): readonly Attempt[] => clean.filter((each) => each.path !== path);

/** What a sender does that breaks the clause. */
const senderMutants: Readonly<Record<string, readonly Attempt[]>> = {
  'sender-delivers': [],
  'sender-signs': [attempt('/accepts', 0, { isValid: false })],
  'sender-time': [attempt('/accepts', 0, { seconds: 900 })],
  'sender-id': [attempt('/fails', 0, { id: 'a' }), attempt('/fails', 1000, { id: 'b' })],
  'sender-retries': [...without('/recovers'), attempt('/recovers', 0, {})],
  'sender-backs-off': [0, 3000, 4000].map((atMs) => attempt('/fails', atMs, {})),
  'sender-retry-after': [0, 1000].map((atMs) => attempt('/limits', atMs, {})),
  'sender-gone': [0, 1000].map((atMs) => attempt('/gone', atMs, {})),
  'sender-redirect': clean,
  'sender-timeout': [attempt('/silent', 0, {})],
  'sender-type': [attempt('/accepts', 0, { type: '' })],
};

describe('a clause of senders', () => {
  it('holds of what a clean sender does', () => {
    const report = senderReport({ attempts: clean, followed: [], endedMs: silenceMs }, 'clean');
    assert.deepEqual(brokenOf(report), []);
    assert.equal(report.summary['not-applicable'], 0);
  });

  for (const { id } of senderClauses) {
    it(`${id} catches the sender that breaks it`, () => {
      const attempts = senderMutants[id];
      assert.ok(attempts !== undefined, 'no mutant breaks it');
      const followed = id === 'sender-redirect' ? ['POST /private'] : [];
      assertCaught(judged(id, { attempts, followed, endedMs: silenceMs }));
    });
  }

  it('of a time-out does not apply to a run that ended before the longest one', () => {
    const attempts = [attempt('/silent', 1, {})];
    const found = judged('sender-timeout', { attempts, followed: [], endedMs: silenceMs });
    assert.equal(found?.verdict, 'not-applicable');
  });
});

function judged(id: string, heard: Parameters<typeof senderReport>[0]) {
  return senderReport(heard, 'mutant').clauses.find((each) => each.id === id);
}
