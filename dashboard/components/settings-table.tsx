/** The settings of the process that answers, with their sources; those that were changed come first. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Setting } from '../api-types.ts';
import { base } from '../description.ts';
import { useItems } from '../use-items.ts';
import { Table } from './plain-table.tsx';
import { Badge } from './value.tsx';

/** They do not change while a process runs; a restart is noticed sooner or later. */
const everyMs = 60_000;

export function SettingsTable(): JSX.Element | null {
  const items = useItems(`${base.value}/meta/settings`, everyMs) as readonly Setting[] | undefined;
  const [text, setText] = useState('');
  const [isAll, setAll] = useState(false);
  if (items === undefined) return null;
  const words = text.toLowerCase();
  const matching = items.filter(
    ({ name, meaning, variable, source }) =>
      (isAll || words !== '' || source !== 'default') &&
      `${name} ${variable} ${meaning}`.toLowerCase().includes(words),
  );
  return (
    <section aria-labelledby="settings-title">
      <h2 id="settings-title">Settings</h2>
      <div class="filters">
        <input
          type="search"
          aria-label="Search settings"
          placeholder="Search settings"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label>
          <input type="checkbox" checked={isAll} onChange={() => setAll(!isAll)} /> also those at their
          defaults
        </label>
        <span class="quiet" role="status">{`${matching.length} of ${items.length}`}</span>
      </div>
      <Table label="Table of settings" headings={['Setting', 'Value', 'Default', 'Source', 'Meaning']}>
        {matching.map(({ name, variable, value, default: fallback, unit, source, secret, meaning }) => (
          <tr key={name}>
            <td>
              {name}
              <br />
              <code class="quiet">{variable}</code>
            </td>
            <td>{secret ? secretText(source) : valueText(value, unit)}</td>
            <td class="quiet">{valueText(fallback, unit)}</td>
            <td>{source === 'default' ? 'default' : <Badge text={source} />}</td>
            <td class="quiet">{meaning.replaceAll('`', '')}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function secretText(source: Setting['source']): string {
  return source === 'default' ? 'not set' : 'set, never shown';
}

function valueText(value: Setting['value'], unit: Setting['unit']): string {
  if (value === null) return 'not set';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (unit === 'port number') return String(value);
  return typeof value === 'number' ? `${value.toLocaleString('en')} ${unit ?? ''}` : String(value);
}
