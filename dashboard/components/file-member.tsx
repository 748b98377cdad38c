/** A member that holds files: each is shown or played, or offered for download; others are chosen or dropped, with progress. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiFile } from '../../src/client/index.ts';
import type { FileField, Listed } from '../description.ts';
import { bytesText, elementFor, isFile, linkOf, removeFile, tagOf, uploadFile } from '../files.ts';
import type { Problem } from '../send.ts';
import { ConfirmButton } from './confirm-button.tsx';
import { FilePreview } from './file-preview.tsx';
import { ProblemNote } from './problem.tsx';

type FileMemberProps = {
  readonly list: Listed;
  /** The id of the document. */
  readonly id: string;
  readonly field: FileField;
  readonly value: unknown;
  /** Reads the document again. */
  readonly onChange: () => Promise<void>;
};

export function FileMember({ list, id, field, value, onChange }: FileMemberProps): JSX.Element {
  const files = [value].flat().filter(isFile);
  return (
    <div class="files">
      {files.length === 0 ? null : (
        <ul>
          {files.map((file) => (
            <ShownFile key={file.id} file={file} canRemove={field.canRemove} onChange={onChange} />
          ))}
        </ul>
      )}
      {field.canUpload ? <Upload {...{ list, id, field, onChange }} before={files[0]} /> : null}
    </div>
  );
}

type ShownFileProps = Pick<FileMemberProps, 'onChange'> & {
  readonly file: ApiFile;
  readonly canRemove: boolean;
};

function ShownFile({ file, canRemove, onChange }: ShownFileProps): JSX.Element {
  const [fault, setFault] = useState('');
  const save = async () => {
    const url = await linkOf(file);
    setFault(url === undefined ? 'The file cannot be read.' : '');
    if (url !== undefined) location.assign(`${url}?download=1`);
  };
  const remove = async () => {
    const problem = await removeFile(file);
    if (problem === undefined) await onChange();
    return problem;
  };
  return (
    <li>
      <Media file={file} />
      <p>
        <span class="file-name">{file.name}</span>{' '}
        <span class="quiet">
          {file.type}, {bytesText(file.bytes)}
        </span>
      </p>
      <div class="buttons">
        <button type="button" onClick={save} aria-label={`Download ${file.name}`}>
          Download
        </button>
        {canRemove ? (
          <ConfirmButton action="Remove" question={`Remove ${file.name}?`} onConfirm={remove} />
        ) : null}
      </div>
      {fault === '' ? null : <p role="alert">{fault}</p>}
    </li>
  );
}

/** Shows the preview of a file that has one, until the file is opened. */
function Media({ file }: { readonly file: ApiFile }): JSX.Element | null {
  const element = elementFor(file);
  const [url, setUrl] = useState<string | undefined>(undefined);
  const open = () => void linkOf(file).then(setUrl);
  useEffect(() => {
    setUrl(undefined);
    if (element !== undefined && file.previews === undefined) open();
  }, [file.id]);
  if (url === undefined) {
    if (file.previews === undefined) return null;
    if (element === undefined) return <FilePreview file={file} alt={file.name} />;
    return (
      <button type="button" class="opener" onClick={open} aria-label={`Open ${file.name}`}>
        <FilePreview file={file} alt="" />
      </button>
    );
  }
  if (element === 'img') return <img src={url} alt={file.name} />;
  // biome-ignore lint/a11y/useMediaCaption: the file is what somebody uploaded, and has no captions.
  if (element === 'audio') return <audio src={url} controls preload="metadata" aria-label={file.name} />;
  // biome-ignore lint/a11y/useMediaCaption: as above.
  return <video src={url} controls preload="metadata" aria-label={file.name} />;
}

type UploadProps = Omit<FileMemberProps, 'value'> & {
  /** The file that is replaced, if the field holds one. */
  readonly before: ApiFile | undefined;
};

type Sending = { readonly name: string; readonly bytes: number; readonly sentBytes: number };

function Upload({ list, id, field, before, onChange }: UploadProps): JSX.Element {
  const { name: fieldName, isList, accept } = field;
  const [sending, setSending] = useState<Sending | undefined>(undefined);
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const [isOver, setOver] = useState(false);
  const stop = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const take = async (chosen: readonly File[]) => {
    setOver(false);
    setProblem(undefined);
    const controller = new AbortController();
    const { signal } = controller;
    stop.current = controller;
    for (const file of isList ? chosen : chosen.slice(0, 1)) {
      const { name, size: bytes } = file;
      const onProgress = (sentBytes: number) => setSending({ name, bytes, sentBytes });
      const ifMatch = isList || before === undefined ? null : await tagOf(before);
      const refused = await uploadFile(file, { list, id, field: fieldName, ifMatch, signal, onProgress });
      setProblem(refused);
      if (refused !== undefined || signal.aborted) break;
    }
    setSending(undefined);
    await onChange();
  };
  const label = isList ? 'Add files' : before === undefined ? 'Add a file' : 'Replace the file';
  return (
    <>
      <label
        class={isOver ? 'drop over' : 'drop'}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          void take([...(event.dataTransfer?.files ?? [])]);
        }}
      >
        <span>
          <strong>{label}</strong> <span class="quiet">choose or drop {isList ? 'them' : 'it'} here</span>
        </span>
        <input
          type="file"
          class="hidden"
          multiple={isList}
          accept={accept}
          disabled={sending !== undefined}
          aria-label={`${label} of ${fieldName}`}
          onChange={(event) => {
            const input = event.currentTarget;
            const chosen = [...(input.files ?? [])];
            input.value = '';
            void take(chosen);
          }}
        />
      </label>
      {sending === undefined ? null : <Progress sending={sending} onStop={() => stop.current?.abort()} />}
      <ProblemNote problem={problem} />
    </>
  );
}

function Progress({
  sending,
  onStop,
}: {
  readonly sending: Sending;
  readonly onStop: () => void;
}): JSX.Element {
  const { name, bytes, sentBytes } = sending;
  return (
    <p class="sending">
      <progress value={sentBytes} max={bytes || 1} aria-label={`Upload of ${name}`} /> {bytesText(sentBytes)}{' '}
      of {bytesText(bytes)}{' '}
      <button type="button" class="small" onClick={onStop}>
        Cancel
      </button>
    </p>
  );
}
