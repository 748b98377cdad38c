/** The form of a new resource. A secret that only this response contains is shown before the list is. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Listed } from '../description.ts';
import { nameOf } from '../presentation.ts';
import { rightsIn } from '../rights.ts';
import { isObject, type Problem, problemOf, send } from '../send.ts';
import { withoutNulls } from './form-values.ts';
import { announce } from './notice.tsx';
import { SchemaForm } from './schema-form.tsx';
import { SecretOnce } from './secret-once.tsx';
import { SidePanel } from './side-panel.tsx';

type CreationProps = { readonly list: Listed; readonly onDone: () => void };

export function Creation({ list, onDone }: CreationProps): JSX.Element {
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [made, setMade] = useState<Record<string, unknown> | undefined>(undefined);
  const rights = rightsIn(list);
  const mayCreate = rights?.may('create') === true;
  const secret = made === undefined ? undefined : shownOnce(list, made);
  const create = async (members: Record<string, unknown>) => {
    const reply = await send('POST', list.path, { json: withoutNulls(members) });
    setProblem(problemOf(reply));
    if (reply.status >= 400) return;
    const document = isObject(reply.json) ? reply.json : members;
    announce('Created', list, document);
    if (isObject(reply.json) && shownOnce(list, reply.json) !== undefined) setMade(reply.json);
    else onDone();
  };
  return (
    <SidePanel title={`New: ${list.schema.title ?? nameOf(list)}`} onClose={onDone}>
      {rights === undefined ? <p class="loading">Loading…</p> : null}
      {rights === undefined || mayCreate ? null : <p>You may not create one.</p>}
      {secret === undefined ? null : <SecretOnce secret={secret} made={made} onDone={onDone} />}
      {secret !== undefined || rights === undefined || !mayCreate || list.create === undefined ? null : (
        <SchemaForm
          {...{ list, problem }}
          schema={rights.seen(list.create)}
          closed={rights.closed(Object.keys(list.create.properties ?? {}))}
          submit="Create"
          onSubmit={create}
          onCancel={onDone}
        />
      )}
    </SidePanel>
  );
}

/** The text that the response has and the resource has not: a key, a secret, a link to the portal. */
function shownOnce({ schema }: Listed, made: Readonly<Record<string, unknown>>): string | undefined {
  const [once] = Object.entries(made).filter(([name]) => schema.properties?.[name] === undefined);
  return typeof once?.[1] === 'string' ? once[1] : undefined;
}
