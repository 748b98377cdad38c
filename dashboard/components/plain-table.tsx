/** Tables that scroll in a box of their own, and objects as such a table, for results whose shape only the response shows. */
import type { ComponentChildren, JSX } from 'preact';
import { Value } from './value.tsx';

/** The heading of a column. Numbers stand at the right, and so does their heading; a hidden heading is for people who hear the table. */
type Heading =
  | string
  | { readonly text: string; readonly isNumeric?: boolean | undefined; readonly isHidden?: boolean };

type TableProps = {
  readonly label: string;
  readonly headings: readonly Heading[];
  readonly class?: string;
  /** The rows. */
  readonly children: ComponentChildren;
};

export function Table({ label, headings, class: name = '', children }: TableProps): JSX.Element {
  return (
    <section class={`scroll ${name}`.trimEnd()} tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {headings.map((heading) => {
              const shown: Exclude<Heading, string> =
                typeof heading === 'string' ? { text: heading } : heading;
              const { text, isNumeric, isHidden } = shown;
              return (
                <th key={text} class={isNumeric ? 'number' : undefined}>
                  {isHidden ? <span class="hidden">{text}</span> : text}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

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
  const numeric = new Set(names.filter((name) => isNumeric(rows.map((row) => row[name]))));
  return (
    <Table label={label} headings={names.map((text) => ({ text, isNumeric: numeric.has(text) }))}>
      {rows.map((row, index) => (
        <tr key={String(row.id ?? index)}>
          {names.map((name) => (
            <td key={name} class={numeric.has(name) ? 'number' : undefined}>
              {cell?.(name, row) ?? <Value value={row[name]} />}
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

function isNumeric(values: readonly unknown[]): boolean {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length > 0 && known.every((value) => typeof value === 'number');
}
