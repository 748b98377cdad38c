/** The server in a few facts: version, start, store and health; a banner on each page if processes of the store differ. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Program } from '../api-types.ts';
import { base } from '../description.ts';
import { send } from '../send.ts';
import { sizeText, Time } from './value.tsx';

const refreshMs = 15_000;

export function AboutServer(): JSX.Element | null {
  const program = useProgram();
  if (program === undefined) return null;
  const { version, node, startedAt, store } = program;
  const engine = store.engine === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  const size = store.bytes === null ? '' : `, ${sizeText(store.bytes)}`;
  return (
    <dl class="gauges">
      <div>
        <dt>version</dt>
        <dd>{version}</dd>
      </div>
      <div>
        <dt>Node</dt>
        <dd>{node}</dd>
      </div>
      <div>
        <dt>started</dt>
        <dd>
          <Time value={startedAt} />
        </dd>
      </div>
      <div>
        <dt>store</dt>
        <dd>{`${engine}${size}`}</dd>
      </div>
    </dl>
  );
}

export function DifferencesBanner(): JSX.Element | null {
  const differences = useProgram()?.differences ?? [];
  if (differences.length === 0) return null;
  return (
    <div class="banner" role="alert">
      <strong>Processes of this store differ.</strong>
      <ul>
        {differences.map(({ what, noticedAt }) => (
          <li key={what}>
            Another process has {what}, noticed <Time value={noticedAt} />.
          </li>
        ))}
      </ul>
    </div>
  );
}

function useProgram(): Program | undefined {
  const [program, setProgram] = useState<Program | undefined>(undefined);
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const reply = await send('GET', `${base.value}/meta`).catch(() => undefined);
      if (!isShown) return;
      if (reply?.status === 200) setProgram(reply.json as Program);
      timer = window.setTimeout(ask, refreshMs);
    };
    void ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, []);
  return program;
}
