/** The result of an import or of its dry run: the counts, and the faults with their lines and columns, as a table and as a file. */
import type { JSX } from 'preact';
import type { ImportCounts } from '../api-types.ts';
import type { Listed } from '../description.ts';
import { bytesText } from '../files.ts';
import { labelOf } from '../presentation.ts';
import { linkTo } from '../route.ts';
import { save, toCsv } from './export-rows.tsx';
import { Table } from './plain-table.tsx';

type ReportProps = {
  readonly list: Listed;
  /** Names of the columns as they were sent. */
  readonly columns: readonly string[];
  readonly isDry: boolean;
  /** Absent: the run was cancelled, or failed. */
  readonly counts?: ImportCounts;
  readonly cancelledAfterBytes?: number;
  readonly failure?: string;
};

export function ImportReport(props: ReportProps): JSX.Element {
  const { list, columns, isDry, counts, cancelledAfterBytes = 0, failure } = props;
  if (counts === undefined) {
    const end =
      failure ?? `the ${isDry ? 'check' : 'import'} was cancelled after ${bytesText(cancelledAfterBytes)}`;
    return (
      <p class="problem" role="alert">
        {`No result: ${end}.`}
        {isDry ? '' : ' Records before that may have been written, unless all or nothing was chosen.'}
      </p>
    );
  }
  const { created, updated, unchanged, refused, errors } = counts;
  const would = isDry ? 'would be ' : '';
  const parts = [
    `${created} ${would}created`,
    `${updated} updated`,
    `${unchanged} unchanged`,
    `${refused} refused`,
  ];
  return (
    <section aria-labelledby="report-title">
      <h2 id="report-title">{isDry ? 'The check' : 'The import'}</h2>
      <p class={refused === 0 ? 'saved' : undefined} role="status">
        {`${parts.join(', ')}.`}
      </p>
      {isDry ? null : (
        <p>
          <a
            href={linkTo('list', { path: list.path, sort: list.sortKeys.includes('id') ? '-id' : undefined })}
          >
            Show the list
          </a>
        </p>
      )}
      {errors.length === 0 ? null : <Faults {...{ list, columns, counts }} />}
    </section>
  );
}

const faultMembers = ['line', 'column', 'member', 'code', 'message'];

type FaultsProps = Pick<ReportProps, 'list' | 'columns'> & { readonly counts: ImportCounts };

function Faults({ list, columns, counts: { errors, errorsMore = 0 } }: FaultsProps): JSX.Element {
  const download = () => save(toCsv(errors, faultMembers), `${list.name}-errors.csv`, 'text/csv');
  return (
    <>
      <Table
        label="Faults"
        headings={[{ text: 'Line', isNumeric: true }, 'Column', 'Member', 'Fault']}
        class="import-faults"
      >
        {errors.map(({ line, column, member = '', message }, at) => (
          <tr key={`${at} ${line} ${member}`}>
            <td class="number">{line}</td>
            <td>{column === undefined ? '' : `${column}: ${columns[column - 1] ?? ''}`}</td>
            <td>{member === '' ? '' : labelOf(list.schema, member.slice(1).replaceAll('/', '.'))}</td>
            <td>{message}</td>
          </tr>
        ))}
      </Table>
      <p class="buttons">
        <button type="button" onClick={download}>
          Download the faults
        </button>
        {errorsMore === 0 ? null : <span class="quiet">{`${errorsMore} more faults are not listed.`}</span>}
      </p>
    </>
  );
}
