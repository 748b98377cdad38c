/** Statements as the server plans them once they are kept, with the rows that they visit, over a database without autovacuum. */
import assert from 'node:assert/strict';
import pg from 'pg';
import type { Bindable, Call } from '../../../src/store/postgres/connection/connection.ts';

export type Node = {
  readonly 'Node Type': string;
  readonly 'Total Cost': number;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Node[];
};

/** Until the server keeps its plan. */
export async function execute(client: pg.Client, call: Call, name: string): Promise<void> {
  await client.query(`PREPARE ${statement(name)} AS ${call.sql}`);
  for (let time = 0; time < 6; time += 1)
    await client.query(`EXECUTE ${statement(name)}${literals(call.values)}`);
  const { rows } = await client.query('SELECT generic_plans FROM pg_prepared_statements WHERE name = $1', [
    name,
  ]);
  assert.ok(Number(rows[0]?.generic_plans) >= 1, `planned anew each time: ${call.sql}`);
}

/** Of the statement that was executed. */
export async function explain(client: pg.Client, call: Call, name: string): Promise<Node> {
  const sql = `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE ${statement(name)}${literals(call.values)}`;
  const { rows } = await client.query(sql);
  const [{ Plan }] = rows[0]['QUERY PLAN'] as readonly [{ readonly Plan: Node }];
  await client.query(`DEALLOCATE ${statement(name)}`);
  return Plan;
}

function statement(name: string): string {
  return pg.escapeIdentifier(name);
}

function literals(values: readonly Bindable[]): string {
  if (values.length === 0) return '';
  const texts = values.map((value) => {
    if (value === null) return 'NULL';
    return pg.escapeLiteral(
      typeof value === 'object' ? `{${value.map((each) => `"${each}"`).join()}}` : String(value),
    );
  });
  return `(${texts.join(', ')})`;
}

export function nodesOf(node: Node): readonly Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** Tables of the store with a row for each table or index of the declaration, and for each of at most 1,000 raises of the counter. */
const small: ReadonlySet<string | undefined> = new Set([
  undefined,
  ...['comity_counters', 'comity_indexes', 'comity_raises'],
]);

/** How each table but the small ones is read. */
export function scansOf(plan: Node): readonly string[] {
  return nodesOf(plan)
    .filter((node) => !small.has(node['Relation Name']))
    .map((node) => node['Node Type']);
}

export function visited(plan: Node): number {
  let rows = 0;
  for (const node of nodesOf(plan)) {
    if (small.has(node['Relation Name'])) continue;
    rows += node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0));
  }
  return rows;
}
