/** The form of a new resource. A secret that only this response contains is shown before the list is. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Listed } from '../description.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { withoutNulls } from './form-values.ts';
import { SchemaForm } from './schema-form.tsx';
import { SecretOnce } from './secret-once.tsx';

type CreationProps = { readonly list: Listed; readonly onDone: () => void };

export function Creation({ list, onDone }: CreationProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [made, setMade] = useState<Record<string, unknown> | undefined>(undefined);
  if (list.create === undefined) return <p />;
  const secret = made === undefined ? undefined : shownOnce(list, made);
  if (secret !== undefined) return <SecretOnce secret={secret} made={made} onDone={onDone} />;
  const create = async (members: Record<string, unknown>) => {
    const reply = await send('POST', list.path, { json: withoutNulls(members) });
    setProblem(problemOf(reply));
    if (reply.status >= 400) return;
    if (isObject(reply.json) && shownOnce(list, reply.json) !== undefined) setMade(reply.json);
    else onDone();
  };
  return (
    <div class="panel">
      <h2>New in {list.name}</h2>
      <SchemaForm
        schema={list.create}
        submit="Create"
        problem={problem}
        onSubmit={create}
        onCancel={onDone}
      />
    </div>
  );
}

/** The text that the response has and the resource has not: a key, a secret, a link to the portal. */
function shownOnce({ schema }: Listed, made: Readonly<Record<string, unknown>>): string | undefined {
  const [once] = Object.entries(made).filter(([name]) => schema.properties?.[name] === undefined);
  return typeof once?.[1] === 'string' ? once[1] : undefined;
}
