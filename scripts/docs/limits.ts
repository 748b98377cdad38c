/**
 * Renders docs/reference/limits.md: the bounds of src/memory/bounds.ts, the settings and the fixed bounds of memory, disk, time and numbers.
 *
 * Usage: npm run docs
 */
import type { FixedBound, IntegerSetting, Setting } from '../../src/config/setting.ts';
import { fixedBounds, settings, variableOf } from '../../src/config/settings.ts';
import { type MemoryBound, memoryBounds } from '../../src/memory/bounds.ts';
import { rowReads } from '../../src/memory/row-reads.ts';
import { workRules } from '../../src/memory/work-rules.ts';

export const path = 'docs/reference/limits.md';

const KiB = 1024;
const MiB = 1024 * KiB;

const preamble = `# Limits

Rendered from \`src/memory/bounds.ts\` and \`src/config/settings.ts\` by \`npm run docs\`.

Everything that a client can make larger or more numerous has a bound. The first table lists what a process keeps in memory between
requests: caches and counters whose keys a client chooses. Each is bounded in octets, or in entries of at most a given size.
\`scripts/checks/bounds.ts\` fails when code keeps a map, a set or a cache between requests that neither this table nor
\`scripts/bound-allowances.ts\`, with a reason for each exception, lists. Running work shares one budget,
\`COMITY_MEMORY_BYTES_MAX\` ([operations](../guides/operations.md#memory)). The tables of sizes, times and numbers list the settings that are
limits, and the last one the fixed bounds; [settings.md](settings.md) has all settings, with the values that each accepts.

## Kept in memory between requests

| what | keys are chosen by | bound | at most, by default | at the bound | in |
|---|---|---|---|---|---|
`;

/** The whole page, with the final line break. */
export function render(): string {
  const rows = Object.values<MemoryBound>(memoryBounds).map(rowOf);
  const limits = Object.entries<Setting>(settings).flatMap(limitsOf);
  const sections = kinds.map(({ title, text, is }) => {
    const lines = limits.filter(([, setting]) => kindOf(setting) === is).map(settingRow);
    return `\n## ${title}\n\n${text}\n\n| variable | default | unit | meaning |\n|---|---|---|---|\n${lines.join('\n')}\n`;
  });
  return `${preamble}${rows.join('\n')}\n${workText()}${rowsReadText()}${sections.join('')}${fixedText()}`;
}

/** Work that becomes larger than its request. */
function workText(): string {
  const lines = Object.values(workRules).map(
    ({ work, per, octets, measured }) => `| ${work} | ${per} | ${sizeOf(octets)} | ${measured} |`,
  );
  return `
## Made by requests out of less

Rows, events and words of some requests take a hundred times their content. They are charged before they are made, by a rule for each kind of
work; together they may take a fourth of \`COMITY_MEMORY_BYTES_MAX\`. A request beyond it waits before its content is parsed, while no more than
32 times as much waits; then it is answered 503 with \`Retry-After\`. A request that needs more than all of it is made alone.
One whose content would need more than the whole budget is 413, which says the limit in octets.

| request | for each | charged | measured |
|---|---|---|---|
${lines.join('\n')}
`;
}

/** Bounds that no setting changes. */
function fixedText(): string {
  const lines = Object.entries<FixedBound>(fixedBounds).map(
    ([name, { value, unit, meaning }]) => `| \`${name}\` | ${value} ${unit} | ${meaning} |`,
  );
  return `
## Fixed

These have one value, which no setting changes; a variable or a setting of the name is refused at the start.

| name in the code | bound | meaning |
|---|---|---|
${lines.join('\n')}
`;
}

/** Rows that the program itself reads from the store in one call. */
function rowsReadText(): string {
  const lines = rowReads.map(
    ({ reads, rows, rowOctets, file }) =>
      `| ${reads} | ${rows} | ${sizeOf(rowOctets)} | ${sizeOf(rows * rowOctets)} | \`${file}\` |`,
  );
  return `
## Reads of the program's own tables

Pages for clients are bounded in octets (\`COMITY_PAGE_BYTES_MAX\`), and so are reads of the event log. Reads of the
program's own tables are bounded by a number of rows, and writes bound the length of a row.

| what | rows | a row, at most | together | in |
|---|---|---|---|---|
${lines.join('\n')}
`;
}

function rowOf(bound: MemoryBound): string {
  const { holds, chosenBy, each, atBound, file } = bound;
  const limit = limitOf(bound);
  return `| ${holds} | ${chosenBy} | ${each === undefined ? limit : `${limit}; ${each}`} | ${sizeOf(octetsOf(bound))} | ${atBound} | \`${file}\` |`;
}

function limitOf({ octets, setting, entries, entryOctets, part }: MemoryBound): string {
  if (setting !== undefined) {
    const named = `${partsText(part)}\`${setting in fixedBounds ? setting : variableOf(setting)}\``;
    return entryOctets === undefined ? named : `${named} entries of ${sizeOf(entryOctets)}`;
  }
  if (entries !== undefined) return `${entries} entries of ${sizeOf(entryOctets ?? 0)}`;
  return sizeOf(octets ?? 0);
}

/** @throws TypeError for a bound that says nothing, or names no setting that is a number */
function octetsOf({ name, octets, setting, entries, entryOctets = 1, part = 1 }: MemoryBound): number {
  const count = setting === undefined ? entries : boundOf(setting);
  const found = count === undefined ? octets : count * entryOctets;
  if (found === undefined)
    throw new TypeError(`the bound of ${name} has neither octets, nor a setting, nor entries`);
  return found * part;
}

function boundOf(name: string): number {
  const row = { ...settings, ...fixedBounds }[name as keyof typeof settings | keyof typeof fixedBounds];
  if (row?.kind === 'integer') return row.default;
  if (row?.kind === 'fixed') return row.value;
  throw new TypeError(`${name} is neither a setting that is a number nor a fixed bound`);
}

function partsText(part: number | undefined): string {
  if (part === undefined) return '';
  if (part === 1 / 2) return 'half of ';
  return part < 1 ? `${part * 8}/8 of ` : `${part} times `;
}

function sizeOf(octets: number): string {
  if (octets >= MiB) return `${Math.round((octets / MiB) * 10) / 10} MiB`;
  return octets >= KiB ? `${octets / KiB} KiB` : `${octets} octets`;
}

type Limit = readonly [name: string, setting: IntegerSetting];
type Kind = 'memory' | 'time' | 'number';

const kinds: readonly { readonly title: string; readonly text: string; readonly is: Kind }[] = [
  {
    title: 'Sizes',
    text: 'Bounds on one item in memory, on disk or on the wire, or on all items of a kind.',
    is: 'memory',
  },
  {
    title: 'Times',
    text: 'Bounds on the time that an operation may take, or for which data is kept.',
    is: 'time',
  },
  { title: 'Numbers', text: 'Bounds on the number of items at once, or in a period.', is: 'number' },
];

const units: Readonly<Record<string, Kind>> = {
  bytes: 'memory',
  characters: 'memory',
  KiB: 'memory',
  ms: 'time',
  seconds: 'time',
};

function limitsOf([name, setting]: readonly [string, Setting]): readonly Limit[] {
  if (setting.kind !== 'integer') return [];
  const bounds = units[setting.unit] !== undefined || name.endsWith('Max') || name.startsWith('rateLimit');
  return bounds ? [[name, setting]] : [];
}

function kindOf({ unit }: IntegerSetting): Kind {
  return units[unit] ?? 'number';
}

function settingRow([name, { default: value, unit, meaning }]: Limit): string {
  return `| \`${variableOf(name)}\` | \`${value}\` | ${unit} | ${meaning} |`;
}
