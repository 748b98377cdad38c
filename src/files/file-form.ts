/**
 * A form with files (multipart/form-data) of a collection: texts become the members of a document or a merge patch, and files go to their
 * place as they arrive. In the document each is the upload that it became; a text in the place of a file is the id of one to keep.
 */
import { contentShape } from '../kernel/content/content-shape.ts';
import { readArrivingMultipart } from '../kernel/content/multipart.ts';
import { formDocument } from '../kernel/content/parse-content.ts';
import type { Ask, Understood } from '../kernel/resource.ts';
import type { FileField } from '../model/file.ts';
import { type Members, ownMember, setMember } from '../model/json-value.ts';
import { ReceivedForm, type Served, type WriteFiles } from '../resources/collection/served-collection.ts';
import type { Announced, Received } from './receive-file.ts';

/** What keeps the files of a form. */
type FormFiles = {
  receive(announced: Announced, content: AsyncIterable<Uint8Array>): Promise<Received>;
  discard(ids: Iterable<string>): void;
};

type Form = Parameters<WriteFiles['receiveForm']>[2];

export class FileForm extends ReceivedForm {
  readonly #files: FormFiles;
  readonly #served: Pick<Served, 'collection' | 'serving'>;
  readonly #ask: Ask;
  readonly #form: Form;
  /** Files by their numbers in the entries of the form. */
  readonly #received: string[] = [];
  #read: Promise<Understood<unknown>> | undefined;

  constructor(files: FormFiles, served: Pick<Served, 'collection' | 'serving'>, ask: Ask, form: Form) {
    super();
    this.#files = files;
    this.#served = served;
    this.#ask = ask;
    this.#form = form;
  }

  read(): Promise<Understood<unknown>> {
    this.#read ??= this.#readOnce();
    return this.#read;
  }

  discard(): void {
    this.#files.discard(this.#received);
  }

  async #readOnce(): Promise<Understood<unknown>> {
    const { collection, serving } = this.#served;
    const { settings } = serving;
    const fields = this.#spellings();
    const content = await this.#form.content.open();
    const read = await readArrivingMultipart(content, this.#form.mediaType, settings, {
      files: new Map([...fields].map(([name, { rule }]) => [name, { bytesMax: rule.bytesMax }])),
      ...{ namesFiles: true, textBytesMax: settings.bodyBytesMax, memory: this.#ask.request.memory },
      onFile: async ({ name, fileName, type, content: octets }) => {
        const field = fields.get(name);
        if (field === undefined) throw new Error(`the form has no file ${name}`);
        const received = await this.#files.receive(
          {
            ...{ principal: this.#ask.principal, rule: field.rule, name: fileName, type, bytes: undefined },
            target: { collection: collection.name, field: field.name },
          },
          octets,
        );
        return 'problem' in received ? received.problem : this.#received.push(received.id) - 1;
      },
    });
    if (!read.ok) return read;
    const texts = read.entries.filter(([name]) => !fields.has(name));
    const document = formDocument(texts, contentShape(collection));
    if (!document.ok) return document;
    const value: Members = document.value;
    for (const [name, entry] of read.entries) {
      const field = fields.get(name);
      if (field === undefined) continue;
      const file = typeof entry === 'number' ? { upload: this.#received[entry] ?? '' } : { id: entry };
      if (typeof entry === 'string' && entry === '') removeFile(value, field);
      else addFile(value, field, file);
    }
    return { ok: true, value: this.#form.isPatch ? { format: 'merge-patch', value } : value };
  }

  /** The fields by the names of their parts: `photos` and `photos[]`. */
  #spellings(): ReadonlyMap<string, FileField> {
    const fields = [...(this.#served.collection.files?.values() ?? [])];
    return new Map(
      fields.flatMap((field) => [
        [field.name, field] as const,
        ...(field.filesMax === undefined ? [] : [[`${field.name}[]`, field] as const]),
      ]),
    );
  }
}

/** A second file of a field that holds one is left to the schema, which refuses a list. */
function addFile(document: Members, { name, filesMax }: FileField, file: Members): void {
  const before = ownMember(document, name);
  if (before === undefined || before === null)
    setMember(document, name, filesMax === undefined ? file : [file]);
  else setMember(document, name, Array.isArray(before) ? [...before, file] : [before, file]);
}

/** An empty text is a control that was left empty, or removes the file. */
function removeFile(document: Members, { name, filesMax }: FileField): void {
  if (ownMember(document, name) === undefined) setMember(document, name, filesMax === undefined ? null : []);
}
