/**
 * Carries out one step while others read and write. A step that needs a table for itself asks for it briefly and then stands
 * back, because everybody who comes after a waiting ALTER TABLE waits with it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { valueSql } from '../compile/value.ts';
import { messageOf, sqlState } from '../connection/failure.ts';
import { DatabaseFailed, SchemaBusy, UnfitRows } from './failure.ts';
import { inTransaction, type Session } from './session.ts';
import type { Step } from './step.ts';

/** What a reader may be held up by an attempt. */
const lockTimeoutMs = 200;
/** Between two attempts, so that those who waited get through. */
const standBackMs = 500;

const lockNotAvailable = '55P03';
const deadlock = '40P01';

export type ApplyOptions = {
  /** Time that a transaction of others may stand in the way of a step. */
  readonly lockWaitMs: number;
};

/** @throws UnfitRows, SchemaBusy, DatabaseFailed; the step then left nothing behind */
export async function applyStep(session: Session, step: Step, { lockWaitMs }: ApplyOptions): Promise<void> {
  const endsAt = performance.now() + lockWaitMs;
  for (;;) {
    try {
      return await (step.transactional ? applyAtOnce(session, step) : applyOneByOne(session, step));
    } catch (error) {
      const state = stateOf(error);
      if (state !== lockNotAvailable && state !== deadlock) throw error;
      if (performance.now() >= endsAt) {
        throw new SchemaBusy(
          `${step.what} could not be had within ${lockWaitMs} ms: a long transaction of another holds the table`,
        );
      }
    }
    await pause(standBackMs * (0.5 + Math.random()));
  }
}

function applyAtOnce(session: Session, { sql }: Step): Promise<void> {
  return inTransaction(session, '', async () => {
    await session.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
    for (const statement of sql) await session.rows(statement);
  });
}

async function applyOneByOne(session: Session, step: Step): Promise<void> {
  try {
    for (const statement of step.sql) await session.rows(statement);
  } catch (error) {
    for (const statement of step.undo ?? []) await session.rows(statement).catch(ignore);
    throw isAboutRows(error) ? await unfitRows(session, step, error) : error;
  }
}

/** Data, constraint, or limit of the program (an index row too long): the rows are at fault, not the server. */
function isAboutRows(error: unknown): boolean {
  return ['22', '23', '54'].includes(stateOf(error)?.slice(0, 2) ?? '');
}

async function unfitRows(session: Session, { what, builds }: Step, error: unknown): Promise<UnfitRows> {
  const example = builds === undefined ? undefined : await exampleOf(session, builds).catch(ignore);
  const reason = example ?? messageOf(error instanceof DatabaseFailed ? error.cause : error);
  return new UnfitRows(`cannot make ${what}: ${reason}; nothing of it was kept`, { cause: error });
}

const exampleCharactersMax = 64;

/** Which rows hold one value of a field that is to be unique. Reads the table, as the index did. */
async function exampleOf(
  session: Session,
  { layout, index }: NonNullable<Step['builds']>,
): Promise<string | undefined> {
  const field = layout.table.unique.find(({ name }) => name === layout.uniqueFields.get(index.name));
  if (field === undefined) return undefined;
  const [row] = await session.rows(`SELECT value::text, count(*), min(id COLLATE "C"), max(id COLLATE "C")
    FROM (SELECT ${valueSql(field)} AS value, id FROM ${layout.name} WHERE deleted_at IS NULL) AS held
    WHERE value IS NOT NULL GROUP BY value HAVING count(*) > 1 LIMIT 1`);
  if (row === undefined) return undefined;
  const [value, count, first, last] = row;
  const shown = JSON.stringify(String(value).slice(0, exampleCharactersMax));
  return `${field.name} must be unique in ${layout.table.name}, but ${count} rows hold ${shown}, such as ${first} and ${last}`;
}

function stateOf(error: unknown): string | undefined {
  return sqlState(error instanceof DatabaseFailed ? error.cause : error);
}

function ignore(): undefined {
  // The error that led here is the one to tell.
}
