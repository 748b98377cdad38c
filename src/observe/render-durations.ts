/**
 * The cells of request-cells.ts as a histogram in the text format of Prometheus. Written here because the library's
 * histogram can only be fed one observation at a time, and ours are added up already. The label `status` is left out: it
 * would multiply the series by the buckets, and the counter has it.
 */
import { durationBuckets, type RequestCells } from './request-cells.ts';

const name = 'comity_request_duration_seconds';
const head =
  `# HELP ${name} Time from a received header section to its answer, by method and route.\n` +
  `# TYPE ${name} histogram\n`;

type Sums = { seconds: number; count: number; readonly buckets: Float64Array };

export function renderDurations(cells: RequestCells): string {
  let text = head;
  for (const [labels, sums] of addUp(cells)) {
    let upTo = 0;
    for (const [at, bound] of durationBuckets.entries()) {
      upTo += sums.buckets[at] ?? 0;
      text += `${name}_bucket{le="${bound}",${labels}} ${upTo}\n`;
    }
    text += `${name}_bucket{le="+Inf",${labels}} ${sums.count}\n`;
    text += `${name}_sum{${labels}} ${sums.seconds}\n${name}_count{${labels}} ${sums.count}\n`;
  }
  return text;
}

function addUp(cells: RequestCells): Map<string, Sums> {
  const all = new Map<string, Sums>();
  for (const cell of cells) {
    const labels = `method="${escapeLabel(cell.method)}",route="${escapeLabel(cell.route)}"`;
    const sums = all.get(labels) ?? { seconds: 0, count: 0, buckets: new Float64Array(cell.buckets.length) };
    all.set(labels, sums);
    sums.seconds += cell.seconds;
    sums.count += cell.count;
    for (const [at, count] of cell.buckets.entries()) sums.buckets[at] = (sums.buckets[at] ?? 0) + count;
  }
  return all;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
