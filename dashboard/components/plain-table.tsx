/** Objects as a table of their members, for results whose shape only the response shows. */
import type { JSX } from 'preact';
import { Value } from './value.tsx';

type PlainTableProps = {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly label: string;
  /** The members to show; absent: all that occur. */
  readonly columns?: readonly string[];
  /** Shows a value in another way. */
  readonly cell?: (name: string, row: Readonly<Record<string, unknown>>) => JSX.Element | undefined;
};

export function PlainTable({ rows, label, columns, cell }: PlainTableProps): JSX.Element {
  if (rows.length === 0) return <p class="empty">There are none.</p>;
  const names = columns ?? [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return (
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={String(row.id ?? index)}>
              {names.map((name) => (
                <td key={name}>{cell?.(name, row) ?? <Value value={row[name]} />}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
