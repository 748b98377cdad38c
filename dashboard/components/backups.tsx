/** Backups in the folder of the server: made on request, shown while they are under way, and deleted. */
import type { JSX } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import type { Backup } from '../api-types.ts';
import { base, belowPrefix } from '../description.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { Table } from './plain-table.tsx';
import { ProblemNote } from './problem.tsx';
import { sizeText, Time } from './value.tsx';

const everyMs = 1000;

export function Backups(): JSX.Element | null {
  const path = `${base.value}/meta/backups`;
  const [items, setItems] = useState<readonly Backup[] | undefined>(undefined);
  const [operation, setOperation] = useState<string | undefined>(undefined);
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const read = useCallback(async () => {
    const { json } = await send('GET', path);
    if (isObject(json) && Array.isArray(json.items)) setItems(json.items as Backup[]);
  }, [path]);
  useEffect(() => void read(), [read]);
  useEffect(() => {
    if (operation === undefined) return undefined;
    let timer = 0;
    const look = async () => {
      const reply = await send('GET', belowPrefix(operation)).catch(() => undefined);
      // An operation that has succeeded leads to the backup, which has no status.
      if (reply === undefined || (isObject(reply.json) && reply.json.status === 'pending')) {
        timer = window.setTimeout(look, everyMs);
        return;
      }
      setFailure(failureOf(reply.json));
      setProblem(problemOf(reply));
      setOperation(undefined);
      await read();
    };
    void look();
    return () => clearTimeout(timer);
  }, [operation, read]);
  if (items === undefined) return null;
  const begin = async () => {
    setProblem(undefined);
    setFailure(undefined);
    const reply = await send('POST', path);
    const location = reply.headers.get('Location');
    if (reply.status === 202 && location !== null) setOperation(location);
    else setProblem(problemOf(reply));
  };
  const remove = async (id: string): Promise<Problem | undefined> => {
    const refused = problemOf(await send('DELETE', `${path}/${id}`));
    await read();
    return refused;
  };
  return (
    <section aria-labelledby="backups-title">
      <h2 id="backups-title">Backups</h2>
      <p class="buttons">
        <button type="button" class="primary" disabled={operation !== undefined} onClick={begin}>
          Back up now
        </button>{' '}
        <span role="status" class="quiet">
          {operation === undefined
            ? `${items.length} kept in the folder of the server`
            : 'The backup is being made.'}
        </span>
      </p>
      <ProblemNote problem={problem} />
      {failure === undefined ? null : (
        <p class="problem" role="alert">
          {failure}
        </p>
      )}
      <BackupTable items={items} onDelete={remove} />
    </section>
  );
}

type BackupTableProps = {
  readonly items: readonly Backup[];
  readonly onDelete: (id: string) => Promise<Problem | undefined>;
};

function BackupTable({ items, onDelete }: BackupTableProps): JSX.Element | null {
  if (items.length === 0) return null;
  return (
    <Table label="Table of backups" headings={['Time', { text: 'Size', isNumeric: true }, 'File', 'Action']}>
      {items.map(({ id, file, bytes, createdAt }) => (
        <tr key={id}>
          <td>
            <Time value={createdAt} />
          </td>
          <td class="number">{sizeText(bytes)}</td>
          <td>
            <code>{file}</code>
          </td>
          <td>
            <ConfirmButton action="Delete" question="Delete this backup?" onConfirm={() => onDelete(id)} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Why the operation failed; undefined if it did not. */
function failureOf(operation: unknown): string | undefined {
  if (!isObject(operation) || operation.status !== 'failed') return undefined;
  return String(isObject(operation.outcome) ? operation.outcome.error : 'The backup failed.');
}
