/** The documents that a document refers to, by `expand` (§4.16), and the lists whose documents refer to it, with their numbers. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { description, type Listed, listOf, pathOf } from '../description.ts';
import { labelOf, nameOf } from '../presentation.ts';
import { titleOf } from '../reference-titles.ts';
import { linkTo } from '../route.ts';
import { isObject, send } from '../send.ts';

type RelatedProps = { readonly list: Listed; readonly target: string; readonly id: string };

/** The server takes so many paths (`expandPathsMax`). */
const pathsMax = 10;

export function Related({ list, target, id }: RelatedProps): JSX.Element | null {
  const included = useIncluded(list, target);
  const referring = (description.value?.lists ?? []).flatMap((each) =>
    [...each.references].filter(([, path]) => path === list.path).map(([field]) => ({ list: each, field })),
  );
  if (included.length === 0 && referring.length === 0) return null;
  return (
    <section aria-labelledby="related-title">
      <h2 id="related-title">Related</h2>
      <ul class="cards">
        {included.map(({ path, document }) => (
          <li key={`${path} ${document.id}`}>
            <a href={linkTo('member', { path, id: String(document.id) })}>
              <strong>{titleOf(listOf(path), document)}</strong>
              <span class="quiet">{nameAt(path)}</span>
            </a>
          </li>
        ))}
        {referring.map((each) => (
          <Referring key={`${each.list.path} ${each.field}`} list={each.list} field={each.field} id={id} />
        ))}
      </ul>
    </section>
  );
}

function nameAt(path: string): string {
  const list = listOf(path);
  return list === undefined ? (path.split('/').at(-1) ?? '') : nameOf(list);
}

type ReferringProps = { readonly list: Listed; readonly field: string; readonly id: string };

function Referring({ list, field, id }: ReferringProps): JSX.Element {
  const [total, setTotal] = useState<string | null>(null);
  const isFilter = list.filters.includes(field);
  useEffect(() => {
    if (!isFilter) return;
    const query = new URLSearchParams({ [field]: id, limit: '1' });
    void send('GET', `${list.path}?${query}`, { headers: { Prefer: 'count=exact' } }).then((reply) =>
      setTotal(reply.headers.get('X-Total-Count')),
    );
  }, [list.path, field, id]);
  return (
    <li>
      <a href={linkTo('list', { path: list.path, [field]: id })}>
        <strong>{`${total ?? ''} ${nameOf(list)}`}</strong>
        <span class="quiet">by {labelOf(list.schema, field)}</span>
      </a>
    </li>
  );
}

type Included = { readonly path: string; readonly document: Record<string, unknown> };

function useIncluded(list: Listed, target: string): readonly Included[] {
  const [included, setIncluded] = useState<readonly Included[]>([]);
  const paths = list.expandable.filter((path) => !path.includes('.')).slice(0, pathsMax);
  useEffect(() => {
    setIncluded([]);
    if (paths.length === 0) return;
    void send('GET', `${target}?expand=${paths.join(',')}`).then(({ json }) => {
      const found = isObject(json) && isObject(json.included) ? Object.entries(json.included) : [];
      const documents = found.flatMap(([name, byId]) =>
        isObject(byId)
          ? Object.values(byId)
              .filter(isObject)
              .map((document) => ({ path: pathOf(name), document }))
          : [],
      );
      setIncluded(documents);
    });
  }, [target]);
  return included;
}
