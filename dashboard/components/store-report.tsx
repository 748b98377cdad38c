/** The store: its size, the documents and indexes of each collection, and the migrations of documents. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { StoreReport as Report } from '../api-types.ts';
import { base } from '../description.ts';
import { send } from '../send.ts';
import { PlainTable, Table } from './plain-table.tsx';
import { Badge, sizeText, Time } from './value.tsx';

/** The server gives one report again for ten seconds. */
const everyMs = 30_000;

type Collection = Report['collections'][number];
type Index = Collection['indexes'][number];

export function StoreReport(): JSX.Element | null {
  const report = useReport();
  if (report === undefined) return null;
  const { bytes, schemaVersion, readAt, collections, migrations } = report;
  return (
    <section aria-labelledby="store-title">
      <h2 id="store-title">Store</h2>
      <p class="quiet">
        {`${sizeText(bytes)} on disk, schema ${schemaVersion}, read `}
        <Time value={readAt} />
      </p>
      <Table
        label="Collections of the store"
        headings={[
          'Collection',
          { text: 'Documents', isNumeric: true },
          { text: 'Size', isNumeric: true },
          'Indexes',
        ]}
      >
        {collections.map((collection) => (
          <tr key={collection.name}>
            <td>{collection.name}</td>
            <td class="number">{documentsText(collection)}</td>
            <td class="number">{collection.bytes === null ? '–' : sizeText(collection.bytes)}</td>
            <td>
              <Indexes indexes={collection.indexes} />
            </td>
          </tr>
        ))}
      </Table>
      <h3>Migrations of documents</h3>
      <PlainTable
        rows={migrations}
        label="Migrations of documents"
        columns={['id', 'collection', 'state', 'at', 'documents', 'changed', 'program']}
      />
    </section>
  );
}

function documentsText({ documents, isEstimate }: Collection): string {
  return `${isEstimate ? 'about ' : ''}${documents.toLocaleString('en')}`;
}

function Indexes({ indexes }: { readonly indexes: readonly Index[] }): JSX.Element {
  if (indexes.length === 0) return <span class="absent">–</span>;
  return (
    <ul class="plain">
      {indexes.map(({ kind, fields, stands }) => (
        <li key={`${kind} ${fields.join()}`}>
          {`${kind === 'index' ? '' : `${kind}: `}${fields.join(', ')}`}
          {stands ? null : (
            <>
              {' '}
              <Badge text="not complete" />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function useReport(): Report | undefined {
  const [report, setReport] = useState<Report | undefined>(undefined);
  useEffect(() => {
    let isShown = true;
    let timer = 0;
    const ask = async () => {
      const reply = await send('GET', `${base.value}/meta/store`).catch(() => undefined);
      if (!isShown) return;
      if (reply?.status === 200) setReport(reply.json as Report);
      timer = window.setTimeout(ask, everyMs);
    };
    void ask();
    return () => {
      isShown = false;
      clearTimeout(timer);
    };
  }, []);
  return report;
}
