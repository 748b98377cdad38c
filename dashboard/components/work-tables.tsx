/** The work of the server beside requests: jobs with their runs, subscribers with their lag, operations and mails that are under way. */
import type { JSX } from 'preact';
import { listOf, pathOf } from '../description.ts';
import { linkTo } from '../route.ts';
import { readable } from '../session.ts';
import { type Item, useItems } from '../use-items.ts';
import { PlainTable } from './plain-table.tsx';
import { Badge, Time } from './value.tsx';

type WorkTable = {
  readonly path: string;
  readonly query: string;
  readonly title: string;
  readonly columns: readonly string[];
  /** The member that names the item in links. */
  readonly key: string;
};

const everyMs = 3000;

const tables = (): readonly WorkTable[] => [
  {
    path: pathOf('meta/connections'),
    query: '',
    title: 'Connections',
    columns: ['kind', 'about', 'principal', 'peer', 'openedAt', 'octets'],
    key: 'id',
  },
  {
    path: pathOf('jobs'),
    query: '?limit=100',
    title: 'Jobs',
    columns: ['name', 'cron', 'everySeconds', 'nextRunAt', 'lastRunAt', 'lastStatus', 'lastErrorMessage'],
    key: 'name',
  },
  {
    path: pathOf('subscribers'),
    query: '?limit=100',
    title: 'Subscribers',
    columns: ['name', 'events', 'lagSeconds', 'pending', 'failed', 'status'],
    key: 'name',
  },
  {
    path: pathOf('operations'),
    query: '?limit=20&sort=-id',
    title: 'Operations',
    columns: ['id', 'status', 'createdAt', 'updatedAt', 'result'],
    key: 'id',
  },
  {
    path: pathOf('mails'),
    query: '?limit=20&sort=-id',
    title: 'Mails',
    columns: ['id', 'to', 'subject', 'status', 'dueAt', 'lastError'],
    key: 'id',
  },
];

export function WorkTables(): JSX.Element {
  return (
    <>
      {tables()
        .filter(({ path }) => readable.value.has(path))
        .map((table) => (
          <Work key={table.path} table={table} />
        ))}
    </>
  );
}

function Work({ table }: { readonly table: WorkTable }): JSX.Element | null {
  const items = useItems(table.path + table.query, everyMs);
  if (items === undefined) return null;
  const known = table.columns.filter((name) => items.some((item) => item[name] !== undefined));
  return (
    <section aria-labelledby={`work-${table.title}`}>
      <h2 id={`work-${table.title}`}>{table.title}</h2>
      <PlainTable
        rows={items}
        label={`Table of ${table.title.toLowerCase()}`}
        columns={known}
        cell={(name, item) => cellOf(table, name, item)}
      />
    </section>
  );
}

function cellOf(table: WorkTable, name: string, item: Item): JSX.Element | undefined {
  const value = item[name];
  if (name === table.key && listOf(table.path)?.member !== undefined)
    return <a href={linkTo('member', { path: table.path, id: String(value) })}>{String(value)}</a>;
  if (typeof value === 'string' && /status$/i.test(name)) return <Badge text={value} />;
  if (typeof value === 'string' && name.endsWith('At')) return <Time value={value} />;
  return undefined;
}
