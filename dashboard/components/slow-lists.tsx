/** The slowest lists that the server has read lately, and how it read them. */
import type { JSX } from 'preact';
import { base } from '../description.ts';
import { useItems } from '../use-items.ts';
import { PlainTable } from './plain-table.tsx';
import { Badge } from './value.tsx';

const everyMs = 15_000;

export function SlowLists(): JSX.Element | null {
  const items = useItems(`${base.value}/meta/slow-lists`, everyMs);
  if (items === undefined) return null;
  return (
    <section aria-labelledby="slow-title">
      <h2 id="slow-title">Slow lists</h2>
      <p class="quiet">
        Of the last hour, from the time that COMITY_SLOW_LIST_MS sets, without the values of filters.
      </p>
      <PlainTable
        rows={items}
        label="Table of slow lists"
        columns={['list', 'filter', 'sort', 'plan', 'count', 'failures', 'p50Ms', 'maxMs', 'lastAt']}
        cell={(name, item) => (name === 'plan' ? <Plan item={item} /> : undefined)}
      />
    </section>
  );
}

function Plan({ item }: { readonly item: Readonly<Record<string, unknown>> }): JSX.Element {
  return (
    <>
      <Badge text={String(item.plan)} /> <span class="quiet">{String(item.words)}</span>
    </>
  );
}
