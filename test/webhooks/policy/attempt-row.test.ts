import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import {
  type Attempt,
  type AttemptFacts,
  attemptChange,
  attemptDocument,
} from '../../../src/webhooks/sending/settle-delivery.ts';
import { attemptId } from '../../../src/work/settlement.ts';
import { answer, attempted, failure, isoTime, madeAt } from './fixture.ts';

function documentOf(parts: Partial<AttemptFacts>): Attempt {
  const facts: AttemptFacts = {
    number: 1,
    trigger: 'automatic',
    attempted: attempted(answer(200)),
    snippetCharacters: 10,
    ...parts,
  };
  return JSON.parse(attemptDocument(facts)) as Attempt;
}

test('says of an answer what came, how long each part took and over what', () => {
  const outcome = answer(503, {
    fields: [
      ['content-type', 'text/plain'],
      ['x-a', '"quoted"'],
    ],
    snippet: 'try later',
    cut: 'slow',
    protocol: 'h2',
    reused: false,
    timing: { dnsMs: 1.239, connectMs: 2, tlsMs: 3.001, firstByteMs: 4.5, totalMs: 10.6 },
  });
  assert.deepEqual(
    documentOf({ attempted: attempted(outcome, madeAt + 20, 20), trigger: 'manual', number: 7 }),
    {
      number: 7,
      statusCode: 503,
      error: null,
      message: null,
      latencyMs: 11,
      responseSnippet: 'try later',
      trigger: 'manual',
      at: isoTime(madeAt),
      timing: { dnsMs: 1.24, connectMs: 2, tlsMs: 3, firstByteMs: 4.5, totalMs: 10.6 },
      responseHeaders: [
        ['content-type', 'text/plain'],
        ['x-a', '"quoted"'],
      ],
      protocol: 'h2',
      reused: false,
      cut: 'slow',
    },
  );
});

test('says of a failure how far it came and why', () => {
  const attempt = documentOf({ attempted: attempted(failure('tls')) });
  assert.equal(attempt.statusCode, null);
  assert.equal(attempt.error, 'tls');
  assert.equal(attempt.message, 'it was tls');
  assert.deepEqual(attempt.responseHeaders, []);
  assert.equal(attempt.protocol, null);
});

test('cuts the snippet at its length, and a pair of surrogates whole', () => {
  const cutOf = (snippet: string, snippetCharacters: number) =>
    documentOf({ attempted: attempted(answer(200, { snippet })), snippetCharacters }).responseSnippet;
  assert.equal(cutOf('0123456789', 10), '0123456789');
  assert.equal(cutOf('0123456789a', 10), '0123456789');
  assert.equal(cutOf('012345678😀', 10), '012345678');
  assert.equal(cutOf('01234567😀9', 10), '01234567😀');
  assert.equal(cutOf('anything', 0), '');
});

/** Code units in any order: halves of pairs, U+0000, and what JSON escapes. */
const nasty = fc
  .array(fc.constantFrom('\0', '\ud83d', '\ude00', '"', '\\', '\n', 'a', '€'), { maxLength: 40 })
  .map((units) => units.join(''));

test('keeps nothing that PostgreSQL cannot hold', () => {
  fc.assert(
    fc.property(nasty, fc.nat(40), (noise, snippetCharacters) => {
      const outcome = answer(200, { snippet: `${noise}\0\ud800x`, fields: [['x', `\0${noise}\udfff`]] });
      const text = attemptDocument({
        number: 1,
        trigger: 'automatic',
        attempted: attempted(outcome),
        snippetCharacters,
      });
      const attempt = JSON.parse(text) as Attempt;
      for (const kept of [attempt.responseSnippet, attempt.responseHeaders[0]?.[1] ?? '']) {
        assert.ok(kept.isWellFormed() && !kept.includes('\0'));
      }
      assert.ok(attempt.responseSnippet.length <= snippetCharacters);
    }),
  );
});

test('keeps a bounded number of fields, each of a bounded length', () => {
  const fields = Array.from({ length: 100 }, (_, at) => [`x-${at}`, 'v'.repeat(1000)] as const);
  const { responseHeaders } = documentOf({ attempted: attempted(answer(200, { fields })) });
  assert.equal(responseHeaders.length, 32);
  assert.ok(responseHeaders.every(([, value]) => value.length === 256));
});

test('orders the attempts of a delivery by id', () => {
  const ids = [1, 2, 9, 10, 99, 100, 999_999].map((number) => attemptId('dlv_1', number));
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(ids[0], 'dlv_1/000001');
});

test('is a row of its own, made once, that belongs to the owner of the delivery', () => {
  const facts: AttemptFacts = {
    number: 3,
    trigger: 'automatic',
    attempted: attempted(answer(200), madeAt + 20, 20),
    snippetCharacters: 10,
  };
  const change = attemptChange('dlv_1', 'usr_1', facts);
  assert.deepEqual(change.expect, { absent: true });
  assert.equal(change.id, 'dlv_1/000003');
  assert.equal(change.next?.owner, 'usr_1');
  assert.equal(change.next?.createdAt, madeAt);
  assert.equal(change.next?.updatedAt, madeAt + 20);
});
