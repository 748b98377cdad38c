/**
 * Every node of the decision graph, both ways: the end it leads to and the whole trace to it. The last tests prove
 * that no edge of the table is left without a case and that every node can be reached.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { answers } from '../../src/http/conduct/answers.ts';
import type { Facts } from '../../src/http/conduct/facts.ts';
import { decide, graph, type Step } from '../../src/http/conduct/graph.ts';
import type { NodeName } from '../../src/http/conduct/node.ts';
import { problemStatus } from '../../src/http/problem.ts';
import { plainRead, plainWrite, reads, writes } from './cases.ts';

function endOf(step: Step): string {
  if (step.kind === 'answer') return step.answer;
  return step.kind === 'refuse' ? step.code : `want ${step.want} at ${step.node}`;
}

const taken = new Set<string>();

function walk(facts: Facts): { end: string; trace: string } {
  const trace: NodeName[] = [];
  const step = decide(facts, trace);
  for (const name of trace) taken.add(`${name} ${graph[name].ask(facts)}`);
  return { end: endOf(step), trace: trace.join(' ') };
}

for (const [group, base, cases] of [
  ['read', plainRead, reads],
  ['write', plainWrite, writes],
] as const) {
  for (const [title, facts, end, trace] of cases) {
    test(`${group}: ${title}`, () => {
      assert.deepEqual(walk({ ...base, ...facts }), { end, trace });
    });
  }
}

test('a result that was superseded leads back to what stands', () => {
  const facts: Facts = { ...plainWrite, result: 'superseded' };
  const trace: NodeName[] = [];
  taken.add('superseded true');
  facts.exists = true;
  const first = decide({ ...facts, exists: undefined }, trace, 'superseded');
  assert.deepEqual(first, { kind: 'want', want: 'state', node: 'exists' });
  assert.deepEqual(trace, ['superseded']);
});

test('asks for each fact only when the walk needs it, and goes on where it stopped', () => {
  const wants: string[] = [];
  const facts: Facts = {
    ...plainWrite,
    idempotencyKey: 'given',
    credential: undefined,
    rateProblem: undefined,
    contentProblem: undefined,
    idempotency: undefined,
    exists: undefined,
    proposalProblem: undefined,
    ifMatch: undefined,
    result: undefined,
  };
  const trace: NodeName[] = [];
  let step = decide(facts, trace);
  while (step.kind === 'want') {
    wants.push(step.want);
    if (step.want === 'principal') {
      facts.credential = 'accepted';
      facts.rateProblem = null;
    }
    if (step.want === 'content') facts.contentProblem = null;
    if (step.want === 'idempotency') facts.idempotency = 'first';
    if (step.want === 'state') facts.exists = true;
    if (step.want === 'proposal') facts.proposalProblem = null;
    if (step.want === 'preconditions') facts.ifMatch = 'absent';
    if (step.want === 'result') facts.result = 'made';
    step = decide(facts, trace, step.node);
  }
  assert.deepEqual(wants, [
    'principal',
    'content',
    'idempotency',
    'state',
    'proposal',
    'preconditions',
    'result',
  ]);
  assert.equal(endOf(step), 'changed');
  assert.equal(trace.length, new Set(trace).size, 'no node was answered twice');
});

test('a refusal without a code is reported as the defect it is', () => {
  const facts: Facts = { ...plainWrite, result: 'refused', resultProblem: undefined };
  assert.throws(() => decide(facts, []), /change_made refused the request without a code/);
});

test('every edge of every node has a case', () => {
  const missing = Object.keys(graph).flatMap((name) =>
    [true, false].map((said) => `${name} ${said}`).filter((edge) => !taken.has(edge)),
  );
  assert.deepEqual(missing, []);
});

test('every refusal on an edge is in the registry, every answer in the answer table', () => {
  for (const node of Object.values(graph)) {
    for (const edge of [node.yes, node.no]) {
      if ('refuse' in edge) for (const code of edge.refuse) assert.ok(problemStatus(code) >= 400);
      if ('answer' in edge) assert.ok(Object.hasOwn(answers, edge.answer));
    }
  }
});
