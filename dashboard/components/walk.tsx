/** A walk through the decision graph: each node with its question, the answer that led on, and the section behind it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { answers } from '../../src/http/conduct/answers.ts';
import { graph } from '../../src/http/conduct/graph.ts';
import type { Edge, Node } from '../../src/http/conduct/node.ts';

/** A longer walk begins with a button for the questions before: most requests pass the first ones alike. */
const nodesShown = 8;

type WalkProps = { readonly trace: string; readonly status: number; readonly code: string | undefined };

export function Walk({ trace, status, code }: WalkProps): JSX.Element {
  const names = trace.split(' ');
  const [isWhole, setWhole] = useState(false);
  const firstShown = isWhole ? 0 : Math.max(0, names.length - nodesShown);
  return (
    <>
      {isWhole || firstShown === 0 ? null : (
        <button type="button" class="small" onClick={() => setWhole(true)}>
          {`Show the ${firstShown} questions before`}
        </button>
      )}
      <ol class="walk" start={firstShown + 1}>
        {names.slice(firstShown).map((name, index) => {
          const node: Node | undefined = (graph as Readonly<Record<string, Node>>)[name];
          const next = names[firstShown + index + 1];
          if (node === undefined) return <li key={name}>{name}</li>;
          const said = saidAt(node, next, status, code);
          return (
            <li key={name} class={next === undefined ? 'last' : undefined}>
              <span class="question">{node.question}</span>{' '}
              <span class={`said ${said ?? ''}`}>{said ?? '?'}</span>
              <span class="section">
                <Sections text={node.section} />
              </span>
            </li>
          );
        })}
        <li class="end">
          <strong>{status}</strong> {code ?? meaningOf(names.at(-1), status)}
        </li>
      </ol>
    </>
  );
}

/** The answer that led from a node to the next one, or to the end. Undefined if both lead there. */
function saidAt(
  node: Node,
  next: string | undefined,
  status: number,
  code: string | undefined,
): 'yes' | 'no' | undefined {
  const leads = (edge: Edge) => {
    if (next !== undefined) return 'to' in edge && edge.to === next;
    if ('to' in edge) return false;
    return 'answer' in edge
      ? answers[edge.answer].status === status
      : code === undefined
        ? status >= 400
        : edge.refuse.some((each) => each === code);
  };
  const [yes, no] = [leads(node.yes), leads(node.no)];
  return yes === no ? undefined : yes ? 'yes' : 'no';
}

function meaningOf(name: string | undefined, status: number): string {
  const node = name === undefined ? undefined : (graph as Readonly<Record<string, Node>>)[name];
  const edges = node === undefined ? [] : [node.yes, node.no];
  const found = edges
    .flatMap((edge) => ('answer' in edge ? [answers[edge.answer]] : []))
    .find((each) => each.status === status);
  return found?.meaning ?? '';
}

/** Sections of RFCs are links to the RFC Editor; those of the specification are named. */
function Sections({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {text.split(', ').map((each) => {
        const [, number, section] = /^RFC (\d+) §([\d.]+)$/.exec(each) ?? [];
        if (number === undefined) return <span key={each}>{each} </span>;
        return (
          <a
            key={each}
            href={`https://www.rfc-editor.org/rfc/rfc${number}#section-${section}`}
            target="_blank"
            rel="noreferrer"
          >
            {each}{' '}
          </a>
        );
      })}
    </>
  );
}
