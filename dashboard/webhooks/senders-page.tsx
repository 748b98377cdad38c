/** The declared senders: where each posts, how its messages are handed on, its secrets, and how many are dead letters. */
import type { JSX } from 'preact';
import type { Sender } from '../api-types.ts';
import { ProblemNote } from '../components/problem.tsx';
import { linkTo } from '../route.ts';
import { type Page, queryOf, useRead } from './api.ts';
import { Countdown } from './clock.tsx';

export function SendersPage({ path }: { readonly path: string }): JSX.Element {
  const { value, problem } = useRead<Page<Sender>>('/senders?limit=1000');
  return (
    <section aria-labelledby="page-title">
      <header class="head">
        <h1 id="page-title">Senders</h1>
      </header>
      <ProblemNote problem={problem} />
      {value?.items.length === 0 ? <p class="empty">The configuration declares no sender.</p> : null}
      {value === undefined || value.items.length === 0 ? null : (
        <section class="scroll" tabIndex={0} aria-label="Table of senders">
          <table>
            <thead>
              <tr>
                <th>Sender</th>
                <th>Posts to</th>
                <th>Handed on to</th>
                <th>Secrets</th>
                <th>Messages</th>
                <th>Dead letters</th>
              </tr>
            </thead>
            <tbody>
              {value.items.map((sender) => (
                <SenderRow key={sender.name} sender={sender} path={path} />
              ))}
            </tbody>
          </table>
        </section>
      )}
    </section>
  );
}

function SenderRow({ sender, path }: { readonly sender: Sender; readonly path: string }): JSX.Element {
  const { name, description, handOn, secretCount, oldSecretsUntil } = sender;
  return (
    <tr>
      <td>
        <a href={linkTo('member', { path, id: name })}>{name}</a>
        {description === '' ? null : <p class="hint">{description}</p>}
      </td>
      <td>
        <code>{sender.path}</code>
      </td>
      <td>{handOn.kind === 'forward' ? handOn.url : handOn.kind}</td>
      <td>
        {secretCount}
        {oldSecretsUntil === null ? null : (
          <p class="hint">
            earlier ones for <Countdown until={oldSecretsUntil} over="a moment" />
          </p>
        )}
      </td>
      <td class="number">
        <Count parameters={{ sender: name }} link={linkTo('inbox', { sender: name })} />
      </td>
      <td class="number">
        <Count
          parameters={{ sender: name, status: 'failed', 'dueAt[null]': 'true' }}
          link={linkTo('inbox', { sender: name, state: 'dead' })}
        />
      </td>
    </tr>
  );
}

type CountProps = { readonly parameters: Readonly<Record<string, string>>; readonly link: string };

function Count({ parameters, link }: CountProps): JSX.Element {
  const { count } = useRead(`/received${queryOf({ ...parameters, limit: 1 })}`, { counted: true });
  return <a href={link}>{count === undefined ? '…' : count.toLocaleString('en')}</a>;
}
