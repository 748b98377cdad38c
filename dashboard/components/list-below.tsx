/** A list below a member, such as the attempts of a delivery, read when it is opened. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { isObject, problemOf, type Reply, send } from '../send.ts';
import { Attempts, areAttempts } from './attempts.tsx';
import { PlainTable } from './plain-table.tsx';
import { ProblemNote } from './problem.tsx';
import { Json } from './value.tsx';

export function ListBelow({ path, name }: { readonly path: string; readonly name: string }): JSX.Element {
  const [reply, setReply] = useState<Reply | undefined>(undefined);
  const open = async (event: Event) => {
    if ((event.currentTarget as HTMLDetailsElement).open && reply === undefined)
      setReply(await send('GET', path));
  };
  return (
    <details class="step" onToggle={open}>
      <summary>{name}</summary>
      {reply === undefined ? <p>Loading…</p> : <ProblemNote problem={problemOf(reply)} />}
      {reply === undefined || reply.status >= 400 ? null : <Below reply={reply} name={name} />}
    </details>
  );
}

function Below({ reply, name }: { readonly reply: Reply; readonly name: string }): JSX.Element {
  const items = isObject(reply.json) && Array.isArray(reply.json.items) ? reply.json.items : undefined;
  if (items === undefined) return <Json value={reply.json ?? reply.text} label={name} />;
  const rows = items.filter(isObject);
  return areAttempts(items) ? <Attempts items={items} /> : <PlainTable rows={rows} label={name} />;
}
