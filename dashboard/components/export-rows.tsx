/** The whole list of a view as a file: NDJSON as the API sends the documents, or CSV of the shown columns. Bounded by its count of rows. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { formatCsvCell } from '../../src/http/syntax/csv.ts';
import { isObject, send } from '../send.ts';

const exportedRowsMax = 50_000;
const rowsPerRequest = 1000;

type Format = 'ndjson' | 'csv';

export function ExportButtons({
  path,
  name,
  columns,
}: {
  readonly path: string;
  readonly name: string;
  readonly columns: readonly string[];
}): JSX.Element {
  const [progress, setProgress] = useState('');
  const run = async (format: Format) => {
    const rows = await readAll(path, (count) => setProgress(`${count} rows…`));
    setProgress(rows.length >= exportedRowsMax ? `The first ${exportedRowsMax} rows were exported.` : '');
    const text =
      format === 'csv' ? toCsv(rows, columns) : rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    save(text, `${name}.${format}`, format === 'csv' ? 'text/csv' : 'application/x-ndjson');
  };
  return (
    <span class="export">
      <button type="button" class="small" onClick={() => run('ndjson')}>
        Export NDJSON
      </button>
      <button type="button" class="small" onClick={() => run('csv')}>
        Export CSV
      </button>
      <span role="status">{progress}</span>
    </span>
  );
}

async function readAll(
  path: string,
  onProgress: (count: number) => void,
): Promise<readonly Record<string, unknown>[]> {
  const [target = '', text = ''] = path.split('?', 2);
  const query = new URLSearchParams(text);
  query.delete('cursor');
  // A list without parameters is on one page.
  if (path.includes('?')) query.set('limit', String(rowsPerRequest));
  const rows: Record<string, unknown>[] = [];
  while (rows.length < exportedRowsMax) {
    const { json } = await send('GET', `${target}?${query}`);
    if (!isObject(json) || !Array.isArray(json.items)) break;
    rows.push(...json.items.filter(isObject));
    onProgress(rows.length);
    if (typeof json.nextCursor !== 'string') break;
    query.set('cursor', json.nextCursor);
  }
  return rows.slice(0, exportedRowsMax);
}

/** As `comity export` writes it, with its guard against formulas: an import reads both. */
export function toCsv(rows: readonly Record<string, unknown>[], columns: readonly string[]): string {
  const lines = [columns, ...rows.map((row) => columns.map((name) => row[name]))];
  return lines.map((line) => `${line.map((value) => formatCsvCell(value, true)).join(',')}\r\n`).join('');
}

export function save(text: string, name: string, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
