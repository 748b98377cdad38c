/** What `comity dev` shows of requests and of failing functions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createDeveloperLog } from '../../src/observe/developer-log.ts';
import type { Observation } from '../../src/observe/observation.ts';

function shown(observation: Observation): readonly string[] | undefined {
  const lines: string[] = [];
  return createDeveloperLog((line) => void lines.push(line))(observation) ? lines : undefined;
}

const answered = {
  kind: 'answered',
  exchange: { id: 'r1', peer: '127.0.0.1', path: '/api/v1/tasks/t1', caller: 'usr_ada', trace: 'a b c' },
  method: 'GET',
  route: '/api/v1/tasks/{id}',
  status: 200,
  code: undefined,
  durationMs: 1.26,
} as const;

test('a request is a line with its caller, and with its trace if it failed', () => {
  assert.deepEqual(shown(answered), ['GET /api/v1/tasks/t1 200 1.3 ms usr_ada']);
  assert.deepEqual(shown({ ...answered, status: 404, code: 'not_found' }), [
    'GET /api/v1/tasks/t1 404 not_found 1.3 ms usr_ada',
    '  a b c',
  ]);
  const { id, peer } = answered.exchange;
  assert.deepEqual(shown({ ...answered, exchange: { id, peer } }), [
    'GET /api/v1/tasks/{id} 200 1.3 ms anonymous',
  ]);
});

test('a failing function is shown by the places outside of Comity', () => {
  const cause = new Error('it broke');
  const own = new URL('../../src/logic/hooks/before-write.ts', import.meta.url).href;
  cause.stack = `Error: it broke\n    at rule (file:///app/rules.ts:2:3)\n    at hook (${own}:1:1)\n    at run (node:internal/x:1:1)`;
  const error = new Error('the hook failed', { cause });
  assert.deepEqual(shown({ kind: 'failed', id: 'r1', error }), [
    'the hook failed\nError: it broke\n    at rule (file:///app/rules.ts:2:3)',
  ]);
  assert.deepEqual(shown({ kind: 'failed', id: 'r1', error: 'text' }), ['text']);
});

test('a failing subscriber, job or handler is a line with its next attempt, and its places', () => {
  const own = new URL('../../src/logic/threads/handler-arguments.ts', import.meta.url).href;
  const frames = `    at rule (file:///app/rules.ts:2:3)\n    at call (${own}:1:1)\n    at async node:internal/x:1:1`;
  const reason = 'Error: it broke (rules.ts:2:3)';
  const failed = { kind: 'function-failed', sender: 'subscriber:reopen', message: 'rec_1' } as const;
  const facts = { ...failed, attempt: 2, failure: 'thrown', reason, frames } as const;
  const nextAt = '2026-03-02T00:00:05.000Z';
  assert.deepEqual(shown({ ...facts, nextAt }), [
    `subscriber:reopen failed, again at ${nextAt} (attempt 2, thrown): ${reason}`,
    '    at rule (file:///app/rules.ts:2:3)',
  ]);
  assert.deepEqual(shown({ ...facts, nextAt: null, frames: undefined, reason: null, failure: 'timeout' }), [
    'subscriber:reopen failed for good (attempt 2, timeout)',
  ]);
  const ended = { kind: 'handler-thread-ended', reason: 'memory', messages: 3 } as const;
  assert.deepEqual(shown({ ...ended, senders: ['job:fill'] }), ['a thread was ended (memory): job:fill']);
});

test('everything else is left to the log', () => {
  assert.equal(shown({ kind: 'connection-refused', peer: 'x' }), undefined);
  assert.deepEqual(shown({ kind: 'listening', url: 'http://127.0.0.1:1' }), []);
});
