/**
 * The import of a file into a collection: its first records and which members its columns are, or that they are left out, a dry run, and the import with its progress.
 * The server writes the records while they arrive, so what was sent is what was done.
 */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ImportCounts } from '../api-types.ts';
import { kindOf } from '../components/form-values.ts';
import { ImportReport } from '../components/import-report.tsx';
import { ProblemNote } from '../components/problem.tsx';
import { type Listed, listOf } from '../description.ts';
import { bytesText } from '../files.ts';
import {
  columnsText,
  type Format,
  formatOf,
  formats,
  keysOfReferences,
  namesOfColumns,
  type Preview,
  previewOf,
  schemaOfColumn,
} from '../import-file.ts';
import { labelOf, nameOf } from '../presentation.ts';
import { forgetTitles } from '../reference-titles.ts';
import { linkTo } from '../route.ts';
import { isObject, type Problem, problemOf, sendFile } from '../send.ts';
import { findImportable, importable } from '../session.ts';

export function ImportPage({ path }: { readonly path: string }): JSX.Element {
  const list = listOf(path);
  if (list?.canImport !== true) return <p role="alert">The API has no import at {path}.</p>;
  return <Import key={path} list={list} />;
}

/** A file that was chosen, and what is sent of it. */
type Chosen = {
  readonly file: File;
  readonly format: Format;
  /** The first record of CSV names the columns. */
  readonly hasHeader: boolean;
  readonly preview: Preview;
  /** The members that the columns are; an empty one is left out. */
  readonly names: readonly string[];
};

function Import({ list }: { readonly list: Listed }): JSX.Element {
  useEffect(() => void findImportable(list), [list]);
  const mayImport = importable.value.get(list.path);
  const [chosen, setChosen] = useState<Chosen | undefined>(undefined);
  const choose = async (file: File, format: Format, hasHeader: boolean) => {
    const preview = await previewOf(file, format, hasHeader);
    const names = format === 'csv' && !hasHeader ? preview.columns.map(() => '') : preview.columns;
    setChosen({ file, format, hasHeader, preview, names });
  };
  return (
    <section aria-labelledby="import-title">
      <header class="head">
        <p class="path">
          <a href={linkTo('list', { path: list.path })}>{nameOf(list)}</a>
        </p>
        <h1 id="import-title">{`Import ${nameOf(list)}`}</h1>
      </header>
      {mayImport === undefined ? <p class="loading">Loading…</p> : null}
      {mayImport === false ? <p role="alert">You may not write documents of this list.</p> : null}
      {mayImport === true ? <FileChoice chosen={chosen} onChoose={choose} /> : null}
      {chosen === undefined ? null : (
        <>
          {chosen.preview.fault === undefined ? null : (
            <p class="problem" role="alert">
              {`The file does not look like ${formats[chosen.format].name}: ${chosen.preview.fault}`}
            </p>
          )}
          <Mapping
            {...{ list, chosen }}
            onRename={(at, name) => setChosen({ ...chosen, names: chosen.names.with(at, name) })}
          />
          <Runs
            key={`${chosen.file.name} ${chosen.file.lastModified} ${chosen.format} ${chosen.hasHeader}`}
            {...{ list, chosen }}
          />
        </>
      )}
    </section>
  );
}

type FileChoiceProps = {
  readonly chosen: Chosen | undefined;
  readonly onChoose: (file: File, format: Format, hasHeader: boolean) => Promise<void>;
};

function FileChoice({ chosen, onChoose }: FileChoiceProps): JSX.Element {
  return (
    <div class="filters">
      <label>
        File{' '}
        <input
          type="file"
          accept=".csv,.ndjson,.jsonl,.json,text/csv,application/json,application/x-ndjson"
          onChange={({ currentTarget: { files } }) => {
            const [file] = files ?? [];
            if (file !== undefined) void onChoose(file, formatOf(file.name), true);
          }}
        />
      </label>
      {chosen === undefined ? (
        <p class="quiet">CSV, NDJSON, or a JSON list, in UTF-8.</p>
      ) : (
        <label>
          Format{' '}
          <select
            value={chosen.format}
            onChange={(event) =>
              void onChoose(chosen.file, event.currentTarget.value as Format, chosen.hasHeader)
            }
          >
            {Object.entries(formats).map(([format, { name }]) => (
              <option key={format} value={format}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {chosen?.format === 'csv' ? (
        <label>
          <input
            type="checkbox"
            checked={chosen.hasHeader}
            onChange={(event) => void onChoose(chosen.file, 'csv', event.currentTarget.checked)}
          />{' '}
          The first line names the columns
        </label>
      ) : null}
    </div>
  );
}

type MappingProps = {
  readonly list: Listed;
  readonly chosen: Chosen;
  readonly onRename: (at: number, name: string) => void;
};

/** The first records, below the members that their columns are. */
function Mapping({ list, chosen: { preview, format, names }, onRename }: MappingProps): JSX.Element | null {
  if (preview.columns.length === 0) return null;
  const isSet = (member: string) => names.some((name) => name === member || name.startsWith(`${member}.`));
  const missing = (list.create?.required ?? []).filter((name) => !isSet(name));
  return (
    <>
      <section class="scroll import-preview" tabIndex={0} aria-label="The first records">
        <table class="rows">
          <thead>
            <tr>
              {preview.columns.map((column, at) => (
                <th key={`${at} ${column}`} scope="col">
                  {column}
                </th>
              ))}
            </tr>
            <tr>
              {names.map((name, at) => (
                <td key={`${at} ${preview.columns[at]}`}>
                  {format === 'csv' ? (
                    <MemberChoice
                      {...{ list, name }}
                      column={preview.columns[at] ?? ''}
                      onChoose={(chosen) => onRename(at, chosen)}
                    />
                  ) : null}{' '}
                  {name === '' ? null : <TypeOf list={list} name={name} />}
                </td>
              ))}
            </tr>
          </thead>
          <tbody>
            {preview.rows.map((row, at) => (
              <tr key={at}>
                {names.map((name, column) => (
                  <td key={`${column} ${name}`}>{row[column] ?? ''}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {missing.length === 0 ? null : (
        <p class="fault">
          {`No column is ${missing.map((name) => labelOf(list.schema, name)).join(', ')}, which a new document must have.`}
        </p>
      )}
    </>
  );
}

type MemberChoiceProps = {
  readonly list: Listed;
  readonly column: string;
  readonly name: string;
  readonly onChoose: (name: string) => void;
};

/** The member that a column is: one of the documents, the key of a reference, or none. */
function MemberChoice({ list, column, name, onChoose }: MemberChoiceProps): JSX.Element {
  const members = namesOfColumns(list);
  const keys = keysOfReferences(list);
  const isUnknown = name !== '' && !members.includes(name) && !keys.includes(name);
  return (
    <select
      aria-label={`Member of the column ${column}`}
      aria-invalid={name !== '' && schemaOfColumn(list, name) === undefined}
      value={name}
      onChange={(event) => onChoose(event.currentTarget.value)}
    >
      <option value="">Leave out</option>
      {isUnknown ? <option value={name}>{name}</option> : null}
      {members.map((each) => (
        <option key={each} value={each}>
          {each.includes('.') ? each : labelOf(list.schema, each)}
        </option>
      ))}
      {keys.length === 0 ? null : (
        <optgroup label="References by a unique member">
          {keys.map((each) => (
            <option key={each} value={each}>
              {keyText(list, each)}
            </option>
          ))}
        </optgroup>
      )}
    </select>
  );
}

/** `Category by SKU` */
function keyText(list: Listed, column: string): string {
  const [member = '', key = ''] = column.split('.');
  const target = listOf(list.references.get(member) ?? '');
  return `${labelOf(list.schema, member)} by ${target === undefined ? key : labelOf(target.schema, key)}`;
}

const kindNames: Readonly<Record<string, string>> = {
  long: 'text',
  choice: 'one of a list',
  choices: 'list',
  texts: 'list',
  json: 'JSON',
};

function TypeOf({ list, name }: { readonly list: Listed; readonly name: string }): JSX.Element {
  const schema = schemaOfColumn(list, name);
  if (schema === undefined) return <span class="fault">no member of this name</span>;
  const kind = kindOf(schema);
  const isRequired = list.create?.required?.includes(name) === true;
  return <span class="quiet">{`${kindNames[kind] ?? kind}${isRequired ? ', required' : ''}`}</span>;
}

const modes = [
  ['create', 'Create new documents'],
  ['upsert', 'Create, or change those that exist'],
  ['merge', 'Change documents that exist'],
  ['replace', 'Replace documents that exist'],
] as const;

type RunsProps = { readonly list: Listed; readonly chosen: Chosen };

/** The settings of an import, the dry run, the import, and what came of them. */
function Runs({ list, chosen }: RunsProps): JSX.Element {
  const [mode, setMode] = useState('create');
  const [fields, setFields] = useState('id');
  const [atomic, setAtomic] = useState(false);
  const { run, running, done, problem, cancel } = useRun(list, chosen);
  const query = (dryRun: boolean) =>
    new URLSearchParams({
      ...{ mode, dryRun: String(dryRun), atomic: String(atomic) },
      ...(mode === 'create' ? {} : { key: fields }),
    });
  return (
    <>
      <form class="import-form" onSubmit={(event) => event.preventDefault()}>
        <label>
          Records{' '}
          <select value={mode} onChange={(event) => setMode(event.currentTarget.value)}>
            {modes.map(([each, text]) => (
              <option key={each} value={each}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {mode === 'create' ? null : (
          <label>
            Found by <input value={fields} onInput={(event) => setFields(event.currentTarget.value)} />
          </label>
        )}
        <label>
          <input
            type="checkbox"
            checked={atomic}
            onChange={(event) => setAtomic(event.currentTarget.checked)}
          />{' '}
          All or nothing
        </label>
        <div class="buttons">
          <button type="button" disabled={running !== undefined} onClick={() => run(query(true))}>
            Check
          </button>
          <button
            type="button"
            class="primary"
            disabled={running !== undefined}
            onClick={() => run(query(false))}
          >
            Import
          </button>
        </div>
      </form>
      {running === undefined ? null : <Progress running={running} onCancel={cancel} />}
      <ProblemNote problem={problem} />
      {done === undefined ? null : <ImportReport {...done} list={list} columns={chosen.names} />}
    </>
  );
}

type Running = { readonly isDry: boolean; readonly bytes: number; readonly sentBytes: number };

function Progress({
  running: { isDry, bytes, sentBytes },
  onCancel,
}: {
  readonly running: Running;
  readonly onCancel: () => void;
}): JSX.Element {
  const what = isDry ? 'Check' : 'Import';
  return (
    <p class="sending" role="status">
      <progress
        value={Math.min(sentBytes, bytes)}
        max={bytes || 1}
        aria-label={`Progress of the ${what.toLowerCase()}`}
      />{' '}
      {`${bytesText(Math.min(sentBytes, bytes))} of ${bytesText(bytes)}`}{' '}
      <button type="button" onClick={onCancel}>
        Cancel
      </button>
    </p>
  );
}

/** The result of a run. */
type Done =
  | { readonly isDry: boolean; readonly counts: ImportCounts }
  | { readonly isDry: boolean; readonly cancelledAfterBytes: number }
  | { readonly isDry: boolean; readonly failure: string };

function useRun(list: Listed, { file, format, hasHeader, preview, names }: Chosen) {
  const [running, setRunning] = useState<Running | undefined>(undefined);
  const [done, setDone] = useState<Done | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const control = useRef(new AbortController());
  useEffect(() => () => control.current.abort(), []);
  const run = async (query: URLSearchParams) => {
    const isDry = query.get('dryRun') === 'true';
    const isNamed =
      format === 'csv' && (!hasHeader || names.some((name, at) => name !== preview.columns[at]));
    if (isNamed) query.set('columns', columnsText(names));
    const type = `${formats[format].type}${format === 'csv' && !hasHeader ? '; header=absent' : ''}`;
    const bytes = file.size;
    let sentBytes = 0;
    control.current = new AbortController();
    setDone(undefined);
    setProblem(undefined);
    setRunning({ isDry, bytes, sentBytes });
    const reply = await sendFile(`${list.path}/import?${query}`, file, {
      ...{ type, signal: control.current.signal },
      onProgress: (sent) => {
        sentBytes = sent;
        setRunning({ isDry, bytes, sentBytes });
      },
    }).catch((error: Error) => error);
    setRunning(undefined);
    if (!isDry) forgetTitles();
    if (reply === undefined) return setDone({ isDry, cancelledAfterBytes: sentBytes });
    if (reply instanceof Error) return setDone({ isDry, failure: reply.message });
    setProblem(problemOf(reply));
    // A refusal counts what was written before it (§4.19.11).
    if (hasCounts(reply.json)) setDone({ isDry, counts: reply.json });
  };
  return { run, running, done, problem, cancel: () => control.current.abort() };
}

function hasCounts(json: unknown): json is ImportCounts {
  return isObject(json) && typeof json.created === 'number' && Array.isArray(json.errors);
}
